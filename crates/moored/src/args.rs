//! What was typed: the verbs and their options, unread. What the words mean is `settings`' affair.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Runs MCP servers so that nothing they start outlives their session.
#[derive(Debug, Parser)]
#[command(name = "moored", version, about, disable_help_subcommand = true)]
#[command(after_help = "`moored -- CMD` is short for `moored run -- CMD`.")]
pub(crate) struct Typed {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Runs a stdio server; when the session ends, everything it started is gone
    Run(Box<RunArgs>),
    /// Shows the MCP servers on this host
    Ps(PsArgs),
    /// Shows all that is known of one server
    Inspect(InspectArgs),
    /// Ends servers by the ladder, verified
    Stop(StopArgs),
    /// Shows what a server wrote to its stderr
    Logs(LogsArgs),
    /// Shows what happened to servers
    Events(EventsArgs),
    /// Shows and checks the settings
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Shows the difference on a server that misbehaves, and cleans up after it
    Demo,
    /// Prints completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Prints the manual, or that of one verb
    Man {
        /// The verb
        verb: Option<String>,
    },
    /// A part in the demo
    #[command(hide = true)]
    DemoPart(DemoPartArgs),
    /// Removes a PID file whose process is dead; what the guardians run when moored was killed
    #[command(hide = true)]
    RemoveDeadPidFile { path: PathBuf },
}

/// Options of `run`. Each is also a `MOORED_…` variable and a key of `[run]` in the settings files.
#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// Settings file that stands before the user's and the machine's; a file in the working folder is read only if named
    /// here
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What to call the server [default: from the command]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// How long it may take to finish after its input has ended [default: 2s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) grace: Option<String>,
    /// How long after SIGTERM it is killed [default: 2s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) kill_after: Option<String>,
    /// When it is put to sleep, to be woken by the next message [default: auto]
    #[arg(long, value_name = "auto|DURATION|off")]
    pub(crate) idle: Option<String>,
    /// Start it afresh after so long, once it is idle
    #[arg(long, value_name = "DURATION")]
    pub(crate) max_lifetime: Option<String>,
    /// How many instances of this server may be awake at once
    #[arg(long, value_name = "N")]
    pub(crate) max_instances: Option<String>,
    /// What to do when there would be more [default: hibernate]
    #[arg(long, value_name = "WHAT", value_parser = ["hibernate", "stop-oldest", "refuse"], hide_possible_values = false)]
    pub(crate) over_limit: Option<String>,
    /// What to do when it crashes [default: never]
    #[arg(long, value_name = "WHEN", value_parser = ["never", "on-crash"])]
    pub(crate) restart: Option<String>,
    /// Its version, instead of the one that it gives
    #[arg(long, value_name = "V")]
    pub(crate) server_version: Option<String>,
    /// Where to write a PID file
    #[arg(long, value_name = "PATH")]
    pub(crate) pid_file: Option<OsString>,
    /// Add the tool `get_server_info` to the server's own
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true)]
    pub(crate) info_tool: Option<String>,
    /// Programs that are meant to outlive the session, a browser say
    #[arg(long, num_args = 1.., value_name = "PROGRAM")]
    pub(crate) keep: Vec<OsString>,
    /// What to do about containers that it starts
    #[arg(long, value_name = "WHICH", value_parser = ["attached", "session", "report", "off"])]
    pub(crate) containers: Option<String>,
    /// Hold it in a Landlock domain too: it can signal nobody outside (voids sudo and the like)
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) sealed: Option<String>,
    /// Hold it in a PID namespace too: the kernel ends it even if all of moored is killed
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) strict: Option<String>,
    /// Give it our own stdio and only watch; it cannot be put to sleep then
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) direct: Option<String>,
    /// Where its stderr is kept [default: in the state folder]
    #[arg(long, value_name = "PATH")]
    pub(crate) log_file: Option<OsString>,
    /// The longest message that is passed on
    #[arg(long, value_name = "SIZE", hide = true)]
    pub(crate) line_limit: Option<String>,
    /// The server: a program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Those that have ended too
    #[arg(short, long)]
    pub(crate) all: bool,
    /// With the processes of each
    #[arg(long)]
    pub(crate) tree: bool,
    /// One JSON object
    #[arg(long, conflicts_with_all = ["tree", "quiet"])]
    pub(crate) json: bool,
    /// Ids only
    #[arg(short, long, conflicts_with = "tree")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// An id, the beginning of one, or a name
    #[arg(value_name = "ID|NAME")]
    pub(crate) target: String,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Ids, beginnings of ids, or names
    #[arg(value_name = "ID|NAME", required_unless_present = "all")]
    pub(crate) targets: Vec<String>,
    /// Every one that is ours
    #[arg(long, conflicts_with = "targets")]
    pub(crate) all: bool,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// An id, the beginning of one, or a name
    #[arg(value_name = "ID|NAME")]
    pub(crate) target: String,
    /// Go on with what is written from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The last lines only
    #[arg(short = 'n', long = "lines", value_name = "N")]
    pub(crate) lines: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Go on with what happens from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Not older than this, such as 1h
    #[arg(long, value_name = "DURATION")]
    pub(crate) since: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// The effective settings, each with its origin
    Show {
        /// One JSON object
        #[arg(long)]
        json: bool,
        /// With this settings file too, as `run --config FILE` would read it
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Where settings files are looked for
    Path {
        /// One JSON object
        #[arg(long)]
        json: bool,
        /// With this settings file too, as `run --config FILE` would read it
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Whether the settings can be understood
    Check {
        /// This file instead of the usual ones
        #[arg(conflicts_with = "config")]
        file: Option<PathBuf>,
        /// With this settings file too, as `run --config FILE` would read it
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// The JSON Schema of a settings file
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct DemoPartArgs {
    #[command(subcommand)]
    pub(crate) part: DemoPart,
}

/// Who plays what in the demo. The names are what its process trees show.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum DemoPart {
    /// Starts the client and kills it when told
    Stage {
        #[arg(last = true)]
        server: Vec<OsString>,
    },
    /// Starts the server and speaks MCP with it
    Client {
        #[arg(last = true)]
        server: Vec<OsString>,
    },
    /// Answers `initialize`, and then neither end of input nor SIGTERM moves it
    Server,
    /// An ordinary child of the server
    Child,
    /// Starts the daemon in a session of its own and leaves it
    Detach,
    /// What was left
    Daemon,
}

/// The arguments with `moored -- CMD` written out as `moored run -- CMD`.
pub(crate) fn written_out(typed: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut typed: Vec<OsString> = typed.into_iter().collect();
    if typed.get(1).is_some_and(|first| first == "--") {
        typed.insert(1, "run".into());
    }
    typed
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn run(line: &str) -> RunArgs {
        let typed = written_out(line.split(' ').map(Into::into));
        match Typed::try_parse_from(typed).expect("is understood").verb {
            Verb::Run(args) => *args,
            other => panic!("not a run: {other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Typed::command().debug_assert();
    }

    #[test]
    fn a_command_alone_is_a_run() {
        assert_eq!(run("moored -- npx -y srv").command, ["npx", "-y", "srv"]);
        assert_eq!(run("moored run -- npx -- srv").command, ["npx", "--", "srv"]);
    }

    #[test]
    fn programs_to_keep_are_given_one_by_one_or_together() {
        assert_eq!(run("moored run --keep tmux --keep adb -- srv").keep, ["tmux", "adb"]);
        assert_eq!(run("moored run --keep tmux adb -- srv").keep, ["tmux", "adb"]);
    }

    #[test]
    fn a_switch_can_be_turned_off() {
        assert_eq!(run("moored run --sealed -- srv").sealed.as_deref(), Some("true"));
        assert_eq!(run("moored run --sealed=false -- srv").sealed.as_deref(), Some("false"));
        assert_eq!(run("moored run -- srv").sealed, None);
    }

    #[test]
    fn no_command_is_no_run() {
        for line in ["moored run", "moored run --", "moored --", "moored run npx", "moored run --bogus -- x"]
        {
            let typed = written_out(line.split(' ').map(Into::into));
            assert_eq!(Typed::try_parse_from(typed).expect_err(line).exit_code(), 2, "{line}");
        }
    }
}
