//! What to run and how to hold it: the one way in.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::owner::contained::Contained;
use crate::owner::start;
use crate::owner::start_error::StartError;
#[cfg(feature = "tokio")]
use crate::owner::start_error::resource_error;
use crate::owner::stdio::Stdio;
use crate::owner::strength::{Layer, Use};
use crate::record::runtime_dir::RuntimeDir;
use crate::shared::ladder::Ladder;

/// Whether the session is written down, and where.
#[derive(Clone, Debug, Default)]
pub enum Recording {
    /// In the user's runtime folder. Where that cannot be had the session is started all the same, and its
    /// [`Strength`](crate::Strength) says that nothing could find what a crash of everything leaves.
    #[default]
    InUserFolder,
    /// In this folder.
    In(RuntimeDir),
    /// Nowhere.
    Off,
}

/// A command that will be started contained.
///
/// ```
/// use moored_containment::{Command, Ladder, Stdio};
/// use std::io::{Read as _, Write as _};
///
/// let mut server = Command::new("cat").stdin(Stdio::Pipe).stdout(Stdio::Pipe).spawn()?;
/// server.stdin.as_mut().expect("piped").write_all(b"hello")?;
/// let report = server.end(Ladder::default())?;
/// assert!(report.verified, "nothing is left, and that is proven");
///
/// let mut said = String::new();
/// server.stdout.take().expect("piped").read_to_string(&mut said)?;
/// assert_eq!(said, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) clear_env: bool,
    pub(crate) env: BTreeMap<OsString, Option<OsString>>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
    pub(crate) layers: [Use; 4],
    pub(crate) ladder: Ladder,
    pub(crate) drop_ladder: Ladder,
    pub(crate) keep: Vec<OsString>,
    pub(crate) on_end: Vec<OsString>,
    pub(crate) on_end_patience: Duration,
    pub(crate) recording: Recording,
    pub(crate) label: String,
}

impl Command {
    /// A program: a path, or a name that is looked for in `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref().to_os_string();
        Self {
            label: Path::new(&program).file_name().unwrap_or(&program).to_string_lossy().into_owned(),
            program,
            args: Vec::new(),
            clear_env: false,
            env: BTreeMap::new(),
            cwd: None,
            stdin: Stdio::Inherit,
            stdout: Stdio::Inherit,
            stderr: Stdio::Inherit,
            layers: [Use::IfAvailable, Use::IfAvailable, Use::Off, Use::Off],
            ladder: Ladder::default(),
            drop_ladder: Ladder { verify: Duration::from_secs(2), ..Ladder::terminate() }
                .kill_after(Duration::from_millis(500)),
            keep: Vec::new(),
            on_end: Vec::new(),
            on_end_patience: Duration::from_secs(10),
            recording: Recording::default(),
        }
    }

    /// One more argument.
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.args.push(arg.as_ref().to_os_string());
        self
    }

    /// More arguments.
    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_os_string()));
        self
    }

    /// Sets a variable of the server's environment, which is otherwise ours.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.env.insert(name.as_ref().to_os_string(), Some(value.as_ref().to_os_string()));
        self
    }

    /// Sets several.
    pub fn envs(
        &mut self,
        variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> &mut Self {
        for (name, value) in variables {
            self.env(name, value);
        }
        self
    }

    /// Takes a variable out.
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.env.insert(name.as_ref().to_os_string(), None);
        self
    }

    /// Begins with no variable at all.
    pub fn env_clear(&mut self) -> &mut Self {
        self.clear_env = true;
        self.env.clear();
        self
    }

    /// The server's working directory, which is otherwise ours. A program given by a relative path is looked for there.
    pub fn current_dir(&mut self, path: impl AsRef<Path>) -> &mut Self {
        self.cwd = Some(path.as_ref().to_path_buf());
        self
    }

    /// The server's standard input; ours unless told otherwise.
    pub fn stdin(&mut self, stdin: Stdio) -> &mut Self {
        self.stdin = stdin;
        self
    }

    /// The server's standard output; ours unless told otherwise.
    pub fn stdout(&mut self, stdout: Stdio) -> &mut Self {
        self.stdout = stdout;
        self
    }

    /// The server's standard error; ours unless told otherwise.
    pub fn stderr(&mut self, stderr: Stdio) -> &mut Self {
        self.stderr = stderr;
        self
    }

    /// Whether a layer is wanted. Guardians and cgroup are used if they can be had, the other two are off.
    pub fn layer(&mut self, layer: Layer, wanted: Use) -> &mut Self {
        self.layers[layer as usize] = wanted;
        self
    }

    /// The program, for messages.
    pub(crate) fn name(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    pub(crate) fn wants(&self, layer: Layer) -> Use {
        self.layers[layer as usize]
    }

    /// Sealed: nothing in the tree can signal anything outside of it, and `kill(-1)` ends it. Voids setuid programs
    /// (sudo) and hides outside processes from debuggers. Needs Linux 6.12 and a user other than root.
    pub fn sealed(&mut self) -> &mut Self {
        self.layer(Layer::Landlock, Use::Required)
    }

    /// Strict: the tree lives in a PID namespace of its own, which the kernel ends even when every process of ours is
    /// killed at once. A plain user needs user namespaces for it.
    pub fn strict(&mut self) -> &mut Self {
        self.layer(Layer::Pidns, Use::Required)
    }

    /// The ladder for an end that was not asked for: the owner died, or a guardian did.
    pub fn ladder(&mut self, ladder: Ladder) -> &mut Self {
        self.ladder = ladder;
        self
    }

    /// The ladder for a handle that is dropped. Dropping waits for it, so it is short: SIGTERM, and SIGKILL after half
    /// a second.
    pub fn drop_ladder(&mut self, ladder: Ladder) -> &mut Self {
        self.drop_ladder = ladder;
        self
    }

    /// A program that is meant to live on when the session ends, with all that is below it then: a path, or the last
    /// part of one. What it started and left without a parent cannot be told from the rest of the tree. A sealed or
    /// strict containment cannot spare a process and refuses it.
    pub fn keep(&mut self, program: impl AsRef<OsStr>) -> &mut Self {
        let program = program.as_ref();
        // The kernel knows a program by its own place, not by a link to it.
        let own_place =
            program.as_encoded_bytes().contains(&b'/').then(|| std::fs::canonicalize(program).ok());
        self.keep.extend(own_place.flatten().map(PathBuf::into_os_string));
        self.keep.push(program.to_os_string());
        self
    }

    /// A command that the guardians run when the tree is gone, also when we were killed: in `/`, with our environment,
    /// without input and output. If a guardian is killed while it runs, it is run again.
    pub fn on_end(&mut self, argv: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.on_end = argv.into_iter().map(|arg| arg.as_ref().to_os_string()).collect();
        self
    }

    /// How long that may take; 10 s unless told otherwise.
    pub fn on_end_patience(&mut self, patience: Duration) -> &mut Self {
        self.on_end_patience = patience;
        self
    }

    /// Whether the session is written down, and where.
    pub fn recording(&mut self, recording: Recording) -> &mut Self {
        self.recording = recording;
        self
    }

    /// What to call the session on record; the program's name unless told otherwise.
    pub fn label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = label.into();
        self
    }

    /// Starts it, contained.
    ///
    /// # Errors
    /// If it cannot be started, or not as strongly held as was required; nothing is left behind then.
    pub fn spawn(&mut self) -> Result<Contained, StartError> {
        start::start(self).map(Contained::new)
    }

    /// Starts it, contained, with a handle for tokio. To be called on a runtime.
    ///
    /// # Errors
    /// As for [`Command::spawn`].
    #[cfg(feature = "tokio")]
    pub fn spawn_async(&mut self) -> Result<crate::owner::aio::Contained, StartError> {
        let started = start::start(self)?;
        crate::owner::aio::Contained::new(started).map_err(|source| resource_error(self, source))
    }
}
