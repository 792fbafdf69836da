//! The flags of every command: what moored says of itself on stderr.

use tracing::level_filters::LevelFilter;

use super::flag::{Flag, Value, flags};

/// How moored's own lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

flags! {
    GLOBAL, GlobalFlags, shared: [], global: true;

    LOG_LEVEL: Flag<LevelFilter> =
        Flag::new(
            "log-level",
            Value::OneOf(
                "LEVEL",
                &[
                    ("error", LevelFilter::ERROR),
                    ("warn", LevelFilter::WARN),
                    ("info", LevelFilter::INFO),
                    ("debug", LevelFilter::DEBUG),
                    ("trace", LevelFilter::TRACE),
                ],
            ),
            "How much moored logs of its own work, on stderr",
        )
        .default("warn")
        .other_variable("MOORED_LOG");
    LOG_FORMAT: Flag<LogFormat> =
        Flag::new(
            "log-format",
            Value::OneOf("FORMAT", &[("text", LogFormat::Text), ("json", LogFormat::Json)]),
            "How those lines are written",
        )
        .default("text");
}
