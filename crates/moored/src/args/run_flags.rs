//! Every flag of `run`, once. What they mean together is in `settings/run.rs`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use moored_launch::{OverLimit, Restart};

use super::flag::{Flag, Offered, Value, flags};
use super::units::{self, IdleText, duration};

/// What to do about containers that the server starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Containers {
    /// Do not look at them.
    #[default]
    Off,
    /// Say which there are.
    Report,
    /// End those that the server is attached to.
    Attached,
    /// End all that the session created.
    Session,
}

flags! {
    RUN, RunFlags, shared: [], global: false;

    NAME: Flag<String> =
        Flag::new("name", Value::Text("NAME", units::text), "What to call the server")
            .described_default("from the command");
    GRACE: Flag<Duration> =
        Flag::new("grace", Value::Text("DURATION", duration), "How long it may take to finish after its stdin is closed")
            .default("2s");
    KILL_AFTER: Flag<Duration> =
        Flag::new("kill-after", Value::Text("DURATION", duration), "How long after SIGTERM it is killed").default("2s");
    IDLE: Flag<IdleText> =
        Flag::new(
            "idle",
            Value::Text("auto|DURATION|off", units::idle),
            "When it is put to sleep, to be woken by the next message",
        )
        .default("auto");
    MAX_LIFETIME: Flag<Option<Duration>> =
        Flag::new(
            "max-lifetime",
            Value::Text("DURATION", units::lifetime),
            "Start it afresh after this long, once it is idle",
        )
        .default("off");
    MAX_INSTANCES: Flag<Option<u32>> =
        Flag::new(
            "max-instances",
            Value::Number("N", units::count),
            "How many instances of this server may be awake at once",
        )
        .default("off")
        // What servers that cap themselves use.
        .other_variable("MAX_KEEP_PROCESSES");
    OVER_LIMIT: Flag<OverLimit> =
        Flag::new(
            "over-limit",
            Value::OneOf(
                "WHAT",
                &[
                    ("hibernate", OverLimit::Hibernate),
                    ("stop-oldest", OverLimit::StopOldest),
                    ("refuse", OverLimit::Refuse),
                ],
            ),
            "What to do when there would be more",
        )
        .default("hibernate");
    RESTART: Flag<Restart> =
        Flag::new(
            "restart",
            Value::OneOf("WHEN", &[("never", Restart::Never), ("on-crash", Restart::OnCrash)]),
            "What to do when it crashes",
        )
        .default("never");
    SERVER_VERSION: Flag<String> =
        Flag::new("server-version", Value::Text("V", units::text), "Its version, instead of the one that it gives");
    PID_FILE: Flag<PathBuf> = Flag::new("pid-file", Value::Path(|path| path), "Where to write a PID file");
    INFO_TOOL: Flag<bool> =
        Flag::new("info-tool", Value::Switch(units::switch), "Add the tool `get_server_info` to the server's own")
            .default("false");
    KEEP: Flag<Vec<OsString>> =
        Flag::new(
            "keep",
            Value::List("PROGRAM", |words| words),
            "Programs that are meant to outlive the session, for example a browser",
        );
    CONTAINERS: Flag<Containers> =
        Flag::new(
            "containers",
            Value::OneOf(
                "WHICH",
                &[
                    ("off", Containers::Off),
                    ("report", Containers::Report),
                    ("attached", Containers::Attached),
                    ("session", Containers::Session),
                ],
            ),
            "What to do about containers that it starts",
        )
        .default("off");
    SEALED: Flag<bool> =
        Flag::new(
            "sealed",
            Value::Switch(units::switch),
            "Hold it in a Landlock domain too: it can signal no process outside (voids sudo and the like)",
        )
        .default("false");
    STRICT: Flag<bool> =
        Flag::new(
            "strict",
            Value::Switch(units::switch),
            "Hold it in a PID namespace too: the kernel ends it even if all of moored is killed",
        )
        .default("false");
    DIRECT: Flag<bool> =
        Flag::new(
            "direct",
            Value::Switch(units::switch),
            "Give it our own stdio and only watch; it cannot be put to sleep then",
        )
        .default("false");
    LOG_FILE: Flag<PathBuf> =
        Flag::new("log-file", Value::Path(|path| path), "Where its stderr is kept")
            .described_default("in the state folder");
    LINE_LIMIT: Flag<usize> =
        Flag::new("line-limit", Value::Number("SIZE", units::size), "The longest message that is passed on")
            .default("64MB")
            .offered(Offered::Hidden);
    AUTO_IDLE: Flag<Duration> =
        Flag::new("auto-idle", Value::Text("DURATION", duration), "How long `--idle auto` waits")
            .offered(Offered::VariableOnly);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::{Args as _, FromArgMatches as _};

    use super::super::flag::{AnyFlag, Kind};
    use super::*;

    flags! {
        ANOTHER, AnotherFlags, shared: [NAME, KEEP], global: false;

        PORT: Flag<usize> = Flag::new("port", Value::Number("P", units::size), "Where it listens").default("8080");
    }

    #[test]
    fn another_command_can_share_a_flag() {
        let command = AnotherFlags::augment_args(clap::Command::new("another"));
        let words = "another --keep tmux --port 80 --keep adb".split(' ');
        let matches = command.clone().get_matches_from(words);
        let typed = AnotherFlags::from_arg_matches(&matches).expect("typed values").0;
        assert_eq!(
            (&typed["keep"][..], &typed["port"][..]),
            (&["tmux".into(), "adb".into()][..], &["80".into()][..])
        );
        assert_eq!(typed.get("name"), None);
        assert!(command.try_get_matches_from(["another", "--grace", "1s"]).is_err());
        let names: Vec<&str> = ANOTHER.iter().map(|flag| flag.name()).collect();
        assert_eq!(names, ["name", "keep", "port"]);
    }

    fn assert_default_is_read<T: Clone + Sync>(flag: &Flag<T>) {
        let words = flag.default_value().map(OsString::from);
        let read = flag.read(&words.into_iter().collect::<Vec<_>>(), Path::new("/"));
        assert!(read.is_ok_and(|value| value.is_some()), "{}", flag.name());
    }

    #[test]
    fn every_default_can_be_read() {
        assert_default_is_read(&GRACE);
        assert_default_is_read(&KILL_AFTER);
        assert_default_is_read(&IDLE);
        assert_default_is_read(&MAX_LIFETIME);
        assert_default_is_read(&MAX_INSTANCES);
        assert_default_is_read(&LINE_LIMIT);
        for flag in RUN.iter().filter(|flag| flag.kind() == Kind::Switch) {
            assert_eq!(flag.default_value(), Some("false"), "{}", flag.name());
        }
    }

    #[test]
    fn no_two_flags_share_a_name_or_a_variable() {
        let mut names: Vec<String> = RUN.iter().flat_map(|flag| flag.variables()).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
