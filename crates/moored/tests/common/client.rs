//! The MCP clients that start `moored run`, each a process of its own. All of them obey the same orders and answer in
//! the same words; `moored_testkit::client` lists both.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};

use moored_testkit::{bin, wait::wait_for_file};

use super::playing::Playing;
use super::scene::Scene;
use super::{DEADLINE, fixtures};

/// Who is the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// The testkit's, over pipes.
    Pipes,
    /// The testkit's, over socket pairs.
    Sockets,
    /// The one on the official TypeScript SDK.
    TypeScript,
    /// The one on the official Python SDK.
    Python,
}

impl Client {
    /// Those that need nothing installed.
    pub(crate) const OWN: [Self; 2] = [Self::Pipes, Self::Sockets];

    /// Starts the scene's server through this client, and waits until both are ready.
    #[track_caller]
    pub(crate) fn play(self, scene: Scene) -> Playing {
        let mut playing = self.start(scene);
        let ready = playing.event();
        assert_eq!(ready["event"], "ready", "{self:?}: {ready}\n{}", playing.words());
        playing
    }

    /// The same for a server that may never answer: waits only until all that it starts is up.
    #[track_caller]
    pub(crate) fn play_unanswered(self, scene: Scene) -> Playing {
        let playing = self.start(scene);
        wait_for_file(&playing.scene.ready_file(), DEADLINE);
        playing
    }

    /// The same, and waits for nothing.
    pub(crate) fn start(self, scene: Scene) -> Playing {
        let child = self.spawn(&scene);
        Playing::new(scene, child)
    }

    fn spawn(self, scene: &Scene) -> Child {
        let (program, mut args): (OsString, Vec<OsString>) = match self {
            Self::Pipes => (bin("client").into(), vec!["--".into()]),
            Self::Sockets => (bin("client").into(), vec!["--sockets".into(), "--".into()]),
            Self::TypeScript => ("node".into(), vec![copied(scene, "node", "client.mjs")]),
            Self::Python => (
                fixtures::part("python").join("bin/python").into(),
                vec![copied(scene, "python", "client.py")],
            ),
        };
        args.extend(scene.argv());
        let mut command = scene.command(program, args);
        if self == Self::TypeScript {
            let folder = fixtures::part("node");
            command.env("FIXTURES", folder.parent().expect("the folder of all fixtures"));
        }
        let errors = File::create(scene.scratch.join("client.err")).expect("a file");
        // A group of its own, so that a test can do to all of it what a terminal does.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).process_group(0);
        command.spawn().expect("a client")
    }
}

/// A script of ours, where the user can read it: the checkout may be where it cannot.
fn copied(scene: &Scene, part: &str, name: &str) -> OsString {
    let copy = scene.scratch.join(name);
    fs::copy(fixtures::source(part).join(name), &copy).expect("a script");
    copy.into_os_string()
}
