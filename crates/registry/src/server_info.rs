//! What `get_server_info` answers: one session's server, and the other instances of that server on this machine. Pure, but for
//! [`PidFileInfo::read`]. A wrapped server's info tool and moored's own tools both answer with this; who the instances are is
//! found out by them.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use moored_containment::ProcessIdentity;
use serde::Serialize;

use crate::boot_time::age_of;
use crate::control::{RunState, Status};
use crate::private_files::open_regular_file;
use crate::run_info::RunInfo;

/// Up to this many processes of one server are healthy, where no limit is set.
const HEALTHY_PROCESSES: u32 = 9;

/// No PID file is longer.
const LONGEST_PID_FILE: u64 = 4096;

/// One session of a server, as far as it is known.
#[derive(Clone, Debug)]
pub struct Instance<'a> {
    /// What it has registered.
    pub info: &'a RunInfo,
    /// Its state; `None` if it does not answer.
    pub state: Option<RunState>,
    /// Its server process; `None` while it sleeps, and where it is not known.
    pub server: Option<ProcessIdentity>,
}

impl<'a> Instance<'a> {
    /// An instance by what it has registered and what it answered, if it did.
    #[must_use]
    pub fn new(info: &'a RunInfo, status: Option<&Status>) -> Self {
        Self {
            info,
            state: status.map(|status| status.state),
            server: status.and_then(|status| status.server),
        }
    }

    /// Whether it may have a process: one that sleeps has none, and of one that does not answer it is not known.
    fn may_have_process(&self) -> bool {
        self.server.is_some() || self.state.is_none()
    }
}

/// What is known of the session besides its [`Instance`].
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The version that the server or the command line gave.
    pub version: Option<String>,
    /// Whether the code on disk is newer than what runs.
    pub stale: bool,
    /// When the program's file was last changed.
    pub build_date: Option<Timestamp>,
    /// Its PID file, if it has one.
    pub pid_file: Option<PidFileInfo>,
}

/// How a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// The code that runs is that on disk, and there are few processes of it.
    Healthy,
    /// There are more processes of it than its limit, or than nine.
    Degraded,
    /// The code on disk is newer than what runs.
    Stale,
}

/// The answer. The names of the fields are part of the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerInfo {
    /// Always true: what fails is told as an error.
    pub success: bool,
    /// The server's version.
    pub server_version: Option<String>,
    /// When the program's file was last changed, if that is known.
    pub build_date: Option<Timestamp>,
    /// The server process; `None` while it sleeps.
    pub current_pid: Option<u32>,
    /// How long that process has lived; 0 while it sleeps.
    pub current_uptime_seconds: u64,
    /// The same for people.
    pub current_uptime_formatted: String,
    /// How long its session has lived, sleep included.
    pub session_uptime_seconds: u64,
    /// Processes of this server on this machine, one per session that is awake.
    pub total_server_processes: usize,
    /// Each of them.
    pub server_processes: Vec<ServerProcess>,
    /// Whether the code on disk is newer than what runs.
    pub stale: bool,
    /// In one word.
    pub health: Health,
    /// The PID file, if there is one.
    pub pid_file: Option<PidFileInfo>,
}

/// One process of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerProcess {
    /// Its process id; `None` if its session does not answer.
    pub pid: Option<u32>,
    /// Whether it is that of the session that was asked for.
    pub is_current: bool,
    /// How long it has lived.
    pub uptime_seconds: u64,
    /// The same for people.
    pub uptime_formatted: String,
    /// Its session's state.
    pub status: RunState,
}

/// What a PID file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PidFileInfo {
    /// Where it should be.
    pub path: String,
    /// Whether it is there.
    pub exists: bool,
    /// Its first line.
    pub pid: Option<u32>,
    /// Its second line.
    pub version: Option<String>,
    /// Its third line.
    pub started_at: Option<String>,
}

impl ServerInfo {
    /// Of the session `own`. `others` are further sessions; those of other servers are passed over.
    #[must_use]
    pub fn new<'a>(own: &Instance<'a>, others: impl IntoIterator<Item = Instance<'a>>, told: Told) -> Self {
        let is_other =
            |one: &Instance<'_>| one.info.server_key == own.info.server_key && one.info.run != own.info.run;
        let others: Vec<Instance<'a>> = others.into_iter().filter(is_other).collect();
        let with_process = std::iter::once(own).chain(&others).filter(|one| one.may_have_process());
        let server_processes: Vec<ServerProcess> =
            with_process.map(|one| process(one, one.info.run == own.info.run)).collect();
        let limit = own.info.max_instances.unwrap_or(HEALTHY_PROCESSES) as usize;
        let uptime = own.server.as_ref().map(age_of).unwrap_or_default();
        Self {
            success: true,
            server_version: told.version,
            build_date: told.build_date,
            current_pid: own.server.map(|server| server.pid),
            current_uptime_seconds: uptime.as_secs(),
            current_uptime_formatted: formatted(uptime),
            session_uptime_seconds: own.info.age().as_secs(),
            total_server_processes: server_processes.len(),
            health: match told.stale {
                true => Health::Stale,
                false if server_processes.len() <= limit => Health::Healthy,
                false => Health::Degraded,
            },
            server_processes,
            stale: told.stale,
            pid_file: told.pid_file,
        }
    }
}

fn process(one: &Instance<'_>, is_current: bool) -> ServerProcess {
    let uptime = one.server.as_ref().map_or_else(|| one.info.age(), age_of);
    ServerProcess {
        pid: one.server.map(|server| server.pid),
        is_current,
        uptime_seconds: uptime.as_secs(),
        uptime_formatted: formatted(uptime),
        status: one.state.unwrap_or(RunState::Starting),
    }
}

impl PidFileInfo {
    /// What the PID file at this place says.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let text = read_pid_file(path).ok();
        let line = |n| text.as_ref().and_then(|text| text.lines().nth(n)).map(str::to_owned);
        Self {
            path: path.to_string_lossy().into_owned(),
            exists: text.is_some(),
            pid: line(0).and_then(|pid| pid.trim().parse().ok()),
            version: line(1),
            started_at: line(2),
        }
    }
}

/// The text of a PID file, or the beginning of what else is there.
///
/// # Errors
/// If it cannot be read, or is no regular file.
pub fn read_pid_file(path: &Path) -> io::Result<String> {
    let mut text = Vec::new();
    open_regular_file(path)?.take(LONGEST_PID_FILE).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// `1h 0m`, `12m 3s`, `9s`.
fn formatted(uptime: Duration) -> String {
    let seconds = uptime.as_secs();
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, s) => format!("{m}m {s}s"),
        (0, h, m, _) => format!("{h}h {m}m"),
        (d, h, _, _) => format!("{d}d {h}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot_time::millis_since_boot;
    use crate::run_info::Origin;

    fn us() -> ProcessIdentity {
        ProcessIdentity::of(std::process::id()).expect("us")
    }

    fn info(run: u8, key: u8) -> RunInfo {
        RunInfo {
            run: format!("01J00000000000000000000{run:03}").parse().expect("an id"),
            moored: us(),
            moored_version: "0".into(),
            name: "srv".into(),
            command: vec!["srv".into()],
            cwd: "/".into(),
            server_key: serde_json::from_str(&key.to_string()).expect("a key"),
            entry_key: serde_json::from_str("2").expect("a key"),
            client: None,
            client_holds_stdin: false,
            origin: Origin::Run,
            began_ms: Some(millis_since_boot()),
            session: None,
            started_at: Timestamp::UNIX_EPOCH,
            log_file: None,
            pid_file: None,
            max_instances: None,
        }
    }

    #[test]
    fn an_uptime_reads_as_people_say_it() {
        let say = |seconds| formatted(Duration::from_secs(seconds));
        assert_eq!([say(9), say(723), say(3600), say(90_000)], ["9s", "12m 3s", "1h 0m", "1d 1h"]);
    }

    #[test]
    fn instances_of_the_same_server_are_counted_and_sleeping_ones_have_no_process() {
        let infos = [info(1, 7), info(2, 7), info(3, 7), info(4, 8), info(5, 7)];
        let awake = |info| Instance { info, state: Some(RunState::Running), server: Some(us()) };
        let asleep = |info| Instance { info, state: Some(RunState::Hibernating), server: None };
        let mute = |info| Instance { info, state: None, server: None };
        let others =
            || [awake(&infos[0]), awake(&infos[1]), asleep(&infos[2]), awake(&infos[3]), mute(&infos[4])];
        let told = ServerInfo::new(&awake(&infos[0]), others(), Told::default());
        let pids: Vec<_> = told.server_processes.iter().map(|one| (one.pid, one.is_current)).collect();
        assert_eq!(pids, [(Some(us().pid), true), (Some(us().pid), false), (None, false)]);
        assert_eq!((told.total_server_processes, told.current_pid), (3, Some(us().pid)));
        let told = ServerInfo::new(&asleep(&infos[2]), others(), Told::default());
        assert_eq!(
            (told.current_pid, told.current_uptime_seconds, told.total_server_processes),
            (None, 0, 3)
        );
        assert!(!told.server_processes.iter().any(|one| one.is_current));
    }

    #[test]
    fn stale_goes_before_the_number_of_processes() {
        let infos: Vec<RunInfo> = (1..=10).map(|run| info(run, 7)).collect();
        let awake = |info| Instance { info, state: Some(RunState::Running), server: Some(us()) };
        let of = |count: usize, stale| {
            let told = Told { stale, ..Told::default() };
            ServerInfo::new(&awake(&infos[0]), infos[..count].iter().map(awake), told).health
        };
        assert_eq!(
            [of(9, false), of(10, false), of(10, true)],
            [Health::Healthy, Health::Degraded, Health::Stale]
        );
    }

    #[test]
    fn a_pid_file_that_is_not_there_is_told_as_such() {
        let read = PidFileInfo::read(Path::new("/nowhere/srv.pid"));
        assert_eq!((read.exists, read.pid, read.path.as_str()), (false, None, "/nowhere/srv.pid"));
    }
}
