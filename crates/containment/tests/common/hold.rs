//! By which layers a session is held.

use std::sync::OnceLock;

use moored_containment::{Command, Layer, Use};
use moored_testkit::{MarkGuard, Scratch, User, example, lacking};

use super::group::Group;

/// One way to hold a session. Each has the guardians; the first has nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    Loop,
    Cgroup,
    Sealed,
    Strict,
}

/// A user, and how this user's session is held.
pub(crate) type Cell = (User, Hold);

impl Hold {
    pub(crate) const ALL: [Self; 4] = [Self::Loop, Self::Cgroup, Self::Sealed, Self::Strict];

    fn layers(self) -> [(Layer, Use); 3] {
        let on = |wanted, layer| (layer, if self == wanted { Use::Required } else { Use::Off });
        [on(Self::Cgroup, Layer::Cgroup), on(Self::Sealed, Layer::Landlock), on(Self::Strict, Layer::Pidns)]
    }

    /// Asks a command of ours for it.
    pub(crate) fn apply(self, command: &mut Command) {
        for (layer, wanted) in self.layers() {
            command.layer(layer, wanted);
        }
    }

    /// Asks `promise_host` for it.
    pub(crate) fn host_options(self) -> Vec<String> {
        let word = |wanted| if wanted == Use::Required { "--require" } else { "--off" };
        self.layers()
            .into_iter()
            .flat_map(|(layer, wanted)| [word(wanted).into(), layer.to_string()])
            .collect()
    }

    /// Asks `contain` for it.
    pub(crate) fn contain_options(self) -> &'static [&'static str] {
        match self {
            Self::Loop => &["--no-cgroup"],
            Self::Cgroup => &[],
            Self::Sealed => &["--no-cgroup", "--sealed"],
            Self::Strict => &["--no-cgroup", "--strict"],
        }
    }

    /// Whether it can spare anybody.
    pub(crate) fn can_keep(self) -> bool {
        matches!(self, Self::Loop | Self::Cgroup)
    }
}

/// Every user we can be, with every hold that this user can have here.
pub(crate) fn cells() -> Vec<Cell> {
    static FOUND: OnceLock<Vec<Cell>> = OnceLock::new();
    let all = || User::available().into_iter().flat_map(|user| Hold::ALL.map(|hold| (user, hold)));
    FOUND.get_or_init(|| all().filter(|cell| is_to_be_had(*cell) && can_be_had(*cell)).collect()).clone()
}

/// Those of [`cells`] that have this hold.
pub(crate) fn cells_with(hold: Hold) -> Vec<Cell> {
    cells().into_iter().filter(|cell| cell.1 == hold).collect()
}

/// Root cannot be sealed, and only root can delegate a group to a plain user; all else a machine for the tests has.
fn is_to_be_had(cell: Cell) -> bool {
    match cell {
        (User::Root, Hold::Sealed) => false,
        (User::Plain, Hold::Cgroup) => User::current() == User::Root,
        _ => true,
    }
}

fn can_be_had(cell: Cell) -> bool {
    let has_it = is_started(cell);
    if !has_it {
        lacking(&format!("sessions of {:?} that are held by {:?}", cell.0, cell.1));
    }
    has_it
}

fn is_started((user, hold): Cell) -> bool {
    let mark = MarkGuard::fresh();
    let scratch = Scratch::for_user(user);
    let group = if hold == Hold::Cgroup { Group::for_user(user) } else { None };
    let mut wrap = mark.wrapping().user(user);
    match (&group, hold) {
        (Some(group), _) => wrap = wrap.cgroup(group.path()),
        (None, Hold::Cgroup) => return false,
        (None, _) => {}
    }
    let mut host = wrap.command(example("moored-containment", "promise_host"), hold.host_options());
    host.args(["--ending", "end", "--runtime"]).arg(scratch.join("run")).args(["--", "true"]);
    let tried = host.current_dir("/").output().expect("promise_host");
    assert!(matches!(tried.status.code(), Some(0 | 125)), "{tried:?}");
    tried.status.success()
}
