//! What to run, and how to treat it: a value that can be compared, so that a replacement knows what has changed. What to
//! run is a launch description of `moored_launch`; when to start it, stop it and start it again is said here.
//!
//! Nothing is started here; `command` makes of it what `launch` starts.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use moored_containment::{Ladder, Layer, Use};
use moored_launch::{Launch, LaunchStdio, StdioSource};

use super::command::Stderr;
use super::restart::Restart;

/// When a server is started.
///
/// ```
/// use moored_client::{ServerSet, ServerSpec, SetOptions, Start};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let lazy = ServerSpec::new("echo", "sh").arg("examples/echo_server.sh").start(Start::AtFirstCall);
/// let set = ServerSet::connect([lazy], SetOptions::default()).await?;   // starts nothing
/// set.server("echo").expect("it sleeps").list_all_tools().await?;       // starts it
/// assert_eq!(set.shutdown().await.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// When the set is connected.
    #[default]
    AtOnce,
    /// When it is called for the first time.
    AtFirstCall,
}

/// One server: its name, what to run, and how to treat it. Two specs that are equal mean the same process.
///
/// ```
/// use std::time::Duration;
/// use moored_client::{ServerSpec, Start};
///
/// let spec = ServerSpec::new("files", "npx")
///     .args(["-y", "@modelcontextprotocol/server-filesystem", "/srv"])
///     .env("API_TOKEN", "secret")
///     .start(Start::AtFirstCall)
///     .idle_stop(Duration::from_secs(900));
/// assert_eq!(spec.name(), "files");
/// assert_ne!(spec.clone().env("API_TOKEN", "other"), spec, "another environment is another server");
/// assert!(!format!("{spec:?}").contains("secret"), "values of variables are not shown");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ServerSpec {
    pub(crate) launch: Launch,
    pub(super) stderr: Stderr,
    pub(crate) connect_timeout: Duration,
    pub(crate) start: Start,
    pub(crate) idle: Option<Duration>,
    pub(crate) restart: Restart,
}

impl ServerSpec {
    /// A server of that name, which is this program: a path, or a name that is looked for in `PATH`.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// let spec = ServerSpec::new("files", "/usr/local/bin/files-server");
    /// assert_eq!(spec.name(), "files");
    /// ```
    pub fn new(name: impl Into<String>, program: impl AsRef<OsStr>) -> Self {
        let (pipe, ours) = (StdioSource::Pipe, StdioSource::Inherit);
        let stdio = LaunchStdio { stdin: pipe, stdout: pipe, stderr: ours };
        Self {
            launch: Launch { stdio, ..Launch::new(name, program) },
            stderr: Stderr::default(),
            connect_timeout: Duration::from_secs(30),
            start: Start::default(),
            idle: None,
            restart: Restart::default(),
        }
    }

    /// What it is called in its set.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// assert_eq!(ServerSpec::new("files", "files-server").name(), "files");
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.launch.name
    }

    /// One more argument.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// let spec = ServerSpec::new("files", "files-server").arg("--root").arg("/srv");
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.launch.args.push(arg.as_ref().to_os_string());
        self
    }

    /// More arguments.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// let spec = ServerSpec::new("files", "files-server").args(["--root", "/srv"]);
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.launch = self.launch.args(args);
        self
    }

    /// Sets a variable of the server's environment, which is otherwise ours.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// let spec = ServerSpec::new("files", "files-server").env("API_TOKEN", "secret");
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.launch.env.set(name, value);
        self
    }

    /// Takes a variable out.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// let spec = ServerSpec::new("files", "files-server").env_remove("SSH_AUTH_SOCK");
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.launch.env.remove(name);
        self
    }

    /// Begins with no variable at all.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// let spec = ServerSpec::new("files", "files-server").env_clear().env("PATH", "/usr/bin");
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.launch.env.clear();
        self
    }

    /// The server's working directory, which is otherwise ours.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// let spec = ServerSpec::new("files", "files-server").current_dir("/srv");
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn current_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.launch.cwd = Some(path.as_ref().to_path_buf());
        self
    }

    /// Where its standard error goes; to ours unless told otherwise.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// use moored_client::Stderr;
    /// let spec = ServerSpec::new("files", "files-server").stderr(Stderr::File("/var/log/files.log".into()));
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// A program that is meant to outlive the server; see [`Command::keep`](moored_containment::Command::keep).
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// let spec = ServerSpec::new("files", "files-server").keep("firefox");
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn keep(mut self, program: impl AsRef<OsStr>) -> Self {
        self.launch.keep.push(program.as_ref().to_os_string());
        self
    }

    /// Whether a layer of containment is wanted; see [`Command::layer`](moored_containment::Command::layer).
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// use moored_containment::{Layer, Use};
    /// let spec = ServerSpec::new("files", "files-server").layer(Layer::Cgroup, Use::Required);
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn layer(mut self, layer: Layer, wanted: Use) -> Self {
        self.launch.layers.insert(layer, wanted);
        self
    }

    /// How it is ended: close stdin, 2 s, SIGTERM, 2 s, SIGKILL unless told otherwise.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// use std::time::Duration;
    /// use moored_containment::Ladder;
    /// let spec = ServerSpec::new("files", "files-server").ladder(Ladder::default().grace(Duration::from_secs(10)));
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn ladder(mut self, ladder: Ladder) -> Self {
        self.launch.ladder = ladder;
        self
    }

    /// How long it may take to come up and answer `initialize`; 30 s unless told otherwise.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// use std::time::Duration;
    /// let spec = ServerSpec::new("files", "files-server").connect_timeout(Duration::from_secs(120));
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// When it is started; at once unless told otherwise.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// use moored_client::Start;
    /// let spec = ServerSpec::new("files", "files-server").start(Start::AtFirstCall);
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Ends it when it has not been called for this long; the next call starts it again. Never unless told otherwise.
    ///
    /// ```
    /// use std::time::Duration;
    /// use moored_client::Event;
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let spec = ServerSpec::new("echo", "sh").arg("examples/echo_server.sh").idle_stop(Duration::from_millis(100));
    /// let set = ServerSet::connect([spec], SetOptions::default()).await?;
    /// let mut events = set.events();
    /// assert!(matches!(events.next().await, Some(Event::Ended { .. })), "it sleeps");
    /// set.server("echo").expect("it sleeps").list_all_tools().await?;
    /// assert!(matches!(events.next().await, Some(Event::Started { .. })), "it was woken");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn idle_stop(mut self, after: Duration) -> Self {
        self.idle = Some(after);
        self
    }

    /// What happens when it ends by itself; it is restarted with back-off unless told otherwise.
    ///
    /// ```
    /// # use moored_client::ServerSpec;
    /// use moored_client::Restart;
    /// let spec = ServerSpec::new("files", "files-server").restart(Restart::Never);
    /// # assert_ne!(spec, ServerSpec::new("files", "files-server"));
    /// ```
    #[must_use]
    pub fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }
}

impl fmt::Debug for ServerSpec {
    /// Without arguments and values of variables, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSpec")
            .field("name", &self.launch.name)
            .field("program", &self.launch.program)
            .field("env", &self.launch.env)
            .field("start", &self.start)
            .field("idle", &self.idle)
            .field("restart", &self.restart)
            .finish_non_exhaustive()
    }
}
