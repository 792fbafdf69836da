//! The verbs, and those of their options that are no settings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::global_flags::{GLOBAL, GlobalFlags};
use super::run_flags::RunFlags;

/// Runs MCP servers so that nothing they start outlives their session.
#[derive(Debug, Parser)]
#[command(name = "moored", version, about, disable_help_subcommand = true)]
#[command(after_help = "`moored -- CMD` is short for `moored run -- CMD`.")]
pub(crate) struct Typed {
    #[command(flatten)]
    pub(crate) global: GlobalFlags,
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

/// Options of `run`: its flags, which are settings too, and where more settings are.
#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) config: ConfigFile,
    #[command(flatten)]
    pub(crate) flags: RunFlags,
    /// The server: a program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// The option of every command that reads settings.
#[derive(Debug, Default, Args)]
pub(crate) struct ConfigFile {
    /// Settings file that stands before the user's and the machine's; a file in the working folder is read only if named
    /// here
    #[arg(long = "config", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
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
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Where settings files are looked for
    Path {
        /// One JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Whether the settings can be understood
    Check {
        /// This file instead of the usual ones
        #[arg(value_name = "FILE", conflicts_with = "file")]
        only: Option<PathBuf>,
        #[command(flatten)]
        config: ConfigFile,
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

/// The arguments with `moored -- CMD` written out as `moored run -- CMD`, also after global options.
pub(crate) fn written_out(typed: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut typed: Vec<OsString> = typed.into_iter().collect();
    let is_global = |word: &OsString| GLOBAL.iter().any(|flag| *word == *format!("--{}", flag.name()));
    let mut at = 1;
    while typed.get(at).is_some_and(is_global) {
        at += 2;
    }
    if typed.get(at).is_some_and(|word| word == "--") {
        typed.insert(at, "run".into());
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
        assert_eq!(run("moored --log-level debug -- npx srv").command, ["npx", "srv"]);
    }

    #[test]
    fn programs_to_keep_are_given_one_by_one_or_together() {
        assert_eq!(run("moored run --keep tmux --keep adb -- srv").flags.0["keep"], ["tmux", "adb"]);
        assert_eq!(run("moored run --keep tmux adb -- srv").flags.0["keep"], ["tmux", "adb"]);
    }

    #[test]
    fn a_switch_can_be_turned_off() {
        assert_eq!(run("moored run --sealed -- srv").flags.0["sealed"], ["true"]);
        assert_eq!(run("moored run --sealed=false -- srv").flags.0["sealed"], ["false"]);
        assert_eq!(run("moored run -- srv").flags.0.get("sealed"), None);
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
