package millrace.oracle;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;

/**
 * Answers scenarios: each line of the standard input is one, as JSON, and each line of the standard output its answer, in
 * the same order. It ends with its input. The argument, if there is one, is a folder for the files of stores.
 */
public final class Oracle {
    private Oracle() {}

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Path state = args.length > 0
            ? Files.createTempDirectory(Path.of(args[0]), "millrace-oracle")
            : Files.createTempDirectory("millrace-oracle");
        Runtime.getRuntime().addShutdownHook(new Thread(() -> delete(state)));
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.println(json.writeValueAsString(Run.answer(json.readValue(line, Scenario.class), state)));
            }
        }
    }

    private static void delete(Path dir) {
        try (var files = Files.walk(dir)) {
            files.sorted(Comparator.reverseOrder()).forEach(p -> p.toFile().delete());
        } catch (IOException e) {
            System.err.println(e);
        }
    }
}
