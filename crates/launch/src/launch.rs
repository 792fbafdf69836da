//! The launch description: all that is decided about a server before it is started, as a value. `moored run` makes one
//! from its settings, `moored-client` from what its host says; both become a containment [`Command`] here, and nowhere
//! else.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use moored_containment::{Command, Ladder, Layer, Stdio, Use};

use crate::environment::{Environment, ProcessEnv};
use crate::key::{Key, KeyWriter};
use crate::mask::masked;

/// What to run, in which environment and folder, with which files, held how, and ended how. Two descriptions that are
/// equal start the same thing.
///
/// ```
/// use moored_launch::{Launch, LaunchStdio};
///
/// let mut launch = Launch::new("greeter", "sh").args(["-c", "echo $GREETING from $PWD"]);
/// launch.env.set("GREETING", "hello");
/// launch.cwd = Some("/".into());
/// launch.stdio = LaunchStdio::PIPED;
/// let mut server = launch.command().spawn()?;
/// let said = std::io::read_to_string(server.stdout.take().expect("piped"))?;
/// assert_eq!(said, "hello from /\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    /// What the server is called.
    pub name: String,
    /// A path, or a name that is looked for in `PATH`.
    pub program: OsString,
    /// The arguments, without the program.
    pub args: Vec<OsString>,
    /// The variables that it gets.
    pub env: Environment,
    /// Its working directory; without one, that of the process that starts it.
    pub cwd: Option<PathBuf>,
    /// Where its three files come from.
    pub stdio: LaunchStdio,
    /// How it is ended.
    pub ladder: Ladder,
    /// Layers of containment that are wanted or refused; for the others, see [`Command::layer`].
    pub layers: BTreeMap<Layer, Use>,
    /// Programs that are meant to outlive the server; see [`Command::keep`].
    pub keep: Vec<OsString>,
}

/// Where the server's three files come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchStdio {
    /// Its standard input.
    pub stdin: StdioSource,
    /// Its standard output.
    pub stdout: StdioSource,
    /// Its standard error.
    pub stderr: StdioSource,
}

impl LaunchStdio {
    /// Pipes: we speak for the client.
    pub const PIPED: Self = Self::all(StdioSource::Pipe);
    /// Our own: the client and the server speak to each other directly.
    pub const INHERITED: Self = Self::all(StdioSource::Inherit);

    const fn all(source: StdioSource) -> Self {
        Self { stdin: source, stdout: source, stderr: source }
    }
}

/// Where one of them comes from. An open file is no value that could be compared: a caller that has one gives it to the
/// [`Command`] itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdioSource {
    /// Our own.
    Inherit,
    /// `/dev/null`.
    Null,
    /// A pipe, whose other end we have.
    Pipe,
}

impl From<StdioSource> for Stdio {
    fn from(source: StdioSource) -> Self {
        match source {
            StdioSource::Inherit => Self::Inherit,
            StdioSource::Null => Self::Null,
            StdioSource::Pipe => Self::Pipe,
        }
    }
}

impl Launch {
    /// That program, without arguments, in our environment and folder, with our files.
    pub fn new(name: impl Into<String>, program: impl AsRef<OsStr>) -> Self {
        Self {
            name: name.into(),
            program: program.as_ref().to_os_string(),
            args: Vec::new(),
            env: Environment::default(),
            cwd: None,
            stdio: LaunchStdio::INHERITED,
            ladder: Ladder::default(),
            layers: BTreeMap::new(),
            keep: Vec::new(),
        }
    }

    /// The same with more arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_os_string()));
        self
    }

    /// Program and arguments.
    #[must_use]
    pub fn argv(&self) -> Vec<OsString> {
        [&self.program].into_iter().chain(&self.args).cloned().collect()
    }

    /// Program and arguments for people and files: secrets are masked.
    #[must_use]
    pub fn masked_argv(&self) -> Vec<String> {
        masked(&self.argv())
    }

    /// Whether a layer is required that the kernel ends as a whole, so that no process of it can be kept.
    #[must_use]
    pub fn can_keep_nothing(&self) -> bool {
        [Layer::Landlock, Layer::Pidns].iter().any(|layer| self.layers.get(layer) == Some(&Use::Required))
    }

    /// The working directory that the server has when a process starts it that is itself there.
    #[must_use]
    pub fn cwd_in(&self, ours: &ProcessEnv) -> PathBuf {
        self.cwd.as_ref().map_or_else(|| ours.cwd.clone(), |cwd| ours.cwd.join(cwd))
    }

    /// What all instances of the same server share: its name and its command.
    #[must_use]
    pub fn server_key(&self) -> Key {
        KeyWriter::default().string(&self.name).list(&self.argv()).key()
    }

    /// What all instances of one entry of a client's config share: command, folder and environment, as the server sees
    /// them.
    #[must_use]
    pub fn entry_key(&self, ours: &ProcessEnv) -> Key {
        let (cwd, env) = (self.cwd_in(ours), self.env.over(&ours.env));
        KeyWriter::default().list(&self.argv()).string(cwd).map(env.iter()).key()
    }

    /// What containment starts.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).label(&self.name).ladder(self.ladder);
        let LaunchStdio { stdin, stdout, stderr } = self.stdio;
        command.stdin(stdin.into()).stdout(stdout.into()).stderr(stderr.into());
        self.env.apply(&mut command);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        for (layer, wanted) in &self.layers {
            command.layer(*layer, *wanted);
        }
        for program in &self.keep {
            command.keep(program);
        }
        command
    }
}

impl fmt::Debug for Launch {
    /// Without what may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("name", &self.name)
            .field("argv", &self.masked_argv())
            .field("env", &self.env)
            .field("cwd", &self.cwd)
            .field("stdio", &self.stdio)
            .field("ladder", &self.ladder)
            .field("layers", &self.layers)
            .field("keep", &self.keep)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn time_server() -> Launch {
        Launch::new("time", "uvx").args(["mcp-server-time"])
    }

    fn ours() -> ProcessEnv {
        let env = [("TZ", "UTC"), ("A", "1")].map(|(name, value)| (name.into(), value.into()));
        ProcessEnv { cwd: "/srv".into(), env: env.into() }
    }

    /// Files of other builds have these numbers in them: a change here makes two builds strangers to each other.
    #[test]
    fn keys_are_the_same_in_every_build() {
        assert_eq!(time_server().server_key().to_string(), "c35e2a5f342c1149");
        assert_eq!(time_server().entry_key(&ours()).to_string(), "cc3bceea002a08df");
        let no_text = Launch::new("time", "uvx").args([OsString::from_vec(vec![0xff])]);
        let bare = ProcessEnv { env: BTreeMap::new(), ..ours() };
        assert_eq!(no_text.entry_key(&bare).to_string(), "a01e223817c6dd5b");
    }

    #[test]
    fn the_name_tells_servers_apart_and_the_environment_tells_entries_apart() {
        let named = Launch { name: "clock".into(), ..time_server() };
        assert_ne!(named.server_key(), time_server().server_key());
        assert_eq!(named.entry_key(&ours()), time_server().entry_key(&ours()));
        let mut changed = time_server();
        changed.env.set("TZ", "CET");
        assert_eq!(changed.server_key(), time_server().server_key());
        assert_ne!(changed.entry_key(&ours()), time_server().entry_key(&ours()));
    }

    /// One client says the folder in its config, another starts us there: the server is the same.
    #[test]
    fn an_entry_is_known_by_what_the_server_sees_not_by_who_said_it() {
        let inherits = time_server();
        let told = Launch {
            cwd: Some("/srv".into()),
            env: Environment::exactly([("A", "1"), ("TZ", "UTC")]),
            ..time_server()
        };
        let elsewhere = ProcessEnv { cwd: "/".into(), env: BTreeMap::new() };
        assert_eq!(told.entry_key(&elsewhere), inherits.entry_key(&ours()));
        let relative = Launch { cwd: Some("srv".into()), ..told.clone() };
        assert_eq!(relative.entry_key(&elsewhere), told.entry_key(&elsewhere));
    }

    #[test]
    fn nothing_secret_is_shown() {
        let mut launch = time_server().args(["--api-key", "hush"]);
        launch.env.set("TOKEN", "hush");
        assert!(!format!("{launch:?}").contains("hush"), "{launch:?}");
    }
}
