package millrace.oracle;

import java.util.ArrayList;
import java.util.List;

/**
 * The functions that scenarios name. The runner of Millrace has the same ones in functions.go. They never see the
 * difference between a null key and an empty one, and show a null value as a tilde.
 */
final class Functions {
    private Functions() {}

    static String text(Object v) {
        return v == null ? "~" : v.toString();
    }

    private static String keyText(Object k) {
        return k == null ? "" : k.toString();
    }

    private static String first(String s) {
        return s.isEmpty() ? "" : s.substring(0, 1);
    }

    /** value maps one value to another. */
    static Object value(String fn, Object v) {
        String s = text(v);
        return switch (fn) {
            case "bang" -> s + "!";
            case "first" -> first(s);
            case "const" -> "c";
            case "text" -> s;
            // Of tables only: no row for some values.
            case "some" -> s.endsWith("0") ? null : s;
            default -> throw new IllegalArgumentException("no value function " + fn);
        };
    }

    /** flat makes several values of one: its characters. */
    static List<Object> flat(Object v) {
        List<Object> out = new ArrayList<>();
        for (char c : text(v).toCharArray()) {
            out.add(String.valueOf(c));
        }
        return out;
    }

    /** keep is a condition. "even" and "odd" look at the last character, "letter" at the first. */
    static boolean keep(String fn, Object v) {
        String s = text(v);
        int last = s.isEmpty() ? 0 : s.charAt(s.length() - 1);
        return switch (fn) {
            case "even" -> last % 2 == 0;
            case "odd" -> last % 2 != 0;
            case "full" -> !s.isEmpty();
            case "letter" -> !s.isEmpty() && s.charAt(0) >= 'a';
            default -> throw new IllegalArgumentException("no condition " + fn);
        };
    }

    /** key makes a key of a record. */
    static Object key(String fn, Object k, Object v) {
        return switch (fn) {
            case "same" -> keyText(k);
            case "first" -> first(text(v));
            case "both" -> keyText(k) + first(text(v));
            case "const" -> "c";
            // Of a foreign key only: a value that begins with a minus sign has none.
            case "foreign" -> text(v).startsWith("-") ? null : first(text(v));
            default -> throw new IllegalArgumentException("no key function " + fn);
        };
    }

    /** join joins two values. "some", of tables only, joins not all of them. */
    static Object join(String fn, Object left, Object right) {
        return fn.equals("some") && text(right).endsWith("0") ? null : text(left) + "/" + text(right);
    }

    /** reduce combines a row and a further value. */
    static Object reduce(String fn, Object row, Object v) {
        String a = text(row);
        String b = text(v);
        return switch (fn) {
            case "concat" -> a + "+" + b;
            case "last" -> b;
            case "max" -> a.compareTo(b) >= 0 ? a : b;
            default -> throw new IllegalArgumentException("no reducer " + fn);
        };
    }

    /**
     * add and subtract change an aggregate; what they have done can be read in it. With "forget" some values make that there
     * is no aggregate any more.
     */
    static Object add(String fn, Object row, Object v) {
        return fn.equals("forget") && text(v).endsWith("0") ? null : text(row) + "," + text(v);
    }

    static Object subtract(String fn, Object row, Object v) {
        return fn.equals("forget") && text(v).endsWith("1") ? null : text(row) + ";" + text(v);
    }

    /** merge joins the aggregates of two sessions. */
    static Object merge(Object a, Object b) {
        return text(a) + "|" + text(b);
    }
}
