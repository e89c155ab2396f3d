package org.slf4j.impl;

import millrace.oracle.Skipped;
import org.slf4j.ILoggerFactory;
import org.slf4j.spi.LoggerFactoryBinder;

/** Makes Kafka Streams log to {@link Skipped}. The name and the static fields are SLF4J's. */
public final class StaticLoggerBinder implements LoggerFactoryBinder {
    public static String REQUESTED_API_VERSION = "1.7";

    private static final StaticLoggerBinder SINGLETON = new StaticLoggerBinder();

    private StaticLoggerBinder() {}

    public static StaticLoggerBinder getSingleton() {
        return SINGLETON;
    }

    @Override
    public ILoggerFactory getLoggerFactory() {
        return Skipped::logger;
    }

    @Override
    public String getLoggerFactoryClassStr() {
        return Skipped.class.getName();
    }
}
