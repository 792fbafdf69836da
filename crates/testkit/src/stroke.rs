//! Kills several processes as one stroke: none of them runs between the first SIGKILL and the last one.
//!
//! SIGSTOP before the kills does not do that for guardians: the kernel sends SIGCONT to the other one when one of them dies. So
//! all of them are pinned to the one core that we run on, under a policy (`SCHED_BATCH`) that never preempts us when a process
//! wakes, and root gives itself one (`SCHED_FIFO`) that no ordinary process preempts. Until we have sent the last signal there is
//! no core on which one of them could run. A plain user has all of this but `SCHED_FIFO`: on a busy machine another program can
//! come between two of its signals once in some hundred strokes, and one target may then see another go before its own signal.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::thread::{CpuSet, gettid, sched_getcpu, sched_setaffinity};

/// A process that is held by pidfd, so that its number cannot be mistaken for another's.
#[derive(Debug)]
pub struct Target {
    pid: Pid,
    pidfd: OwnedFd,
}

impl Target {
    /// Holds the process that has this number, if `is_it` says after that that it is the one that is meant.
    pub fn hold(pid: u32, is_it: impl FnOnce() -> bool) -> Option<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let target = Self { pid, pidfd };
        (is_it() && !target.is_dead()).then_some(target)
    }

    fn is_dead(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).expect("poll") > 0
    }

    /// Every thread of it runs on that core only, and does not preempt whoever runs there.
    fn pin_to(&self, core: &CpuSet) {
        let pid = self.pid.as_raw_pid();
        assert!(chrt(&["--all-tasks", "--batch", "--pid", "0"], self.pid), "{self:?}");
        for task in
            std::fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task")).expect("it lives")
        {
            let task = task.expect("an entry").file_name();
            let task = task.to_str().and_then(|task| task.parse().ok()).and_then(Pid::from_raw);
            sched_setaffinity(task, core).expect("a thread of a process that lives");
        }
    }
}

/// SIGKILL to all of them, and tells when that began. Returns when all are dead.
///
/// # Panics
///
/// If one of them died before, or does not die.
#[track_caller]
pub fn kill_at_once(targets: &[Target]) -> Instant {
    const DEADLINE: Duration = Duration::from_secs(60);
    // A thread of its own: its caller keeps all its cores.
    let began = std::thread::scope(|scope| scope.spawn(|| strike(targets)).join().expect("a stroke"));
    for target in targets {
        crate::wait_until("a killed process is dead", DEADLINE, || target.is_dead().then_some(()));
    }
    began
}

fn strike(targets: &[Target]) -> Instant {
    let mut core = CpuSet::new();
    core.set(sched_getcpu());
    sched_setaffinity(None, &core).expect("the core that we run on");
    targets.iter().for_each(|target| target.pin_to(&core));
    if !chrt(&["--fifo", "--pid", "1"], gettid()) {
        // A thread that has just slept is not at the end of its time slice.
        std::thread::sleep(Duration::from_millis(1));
    }
    let began = Instant::now();
    let sent: Vec<_> = targets.iter().map(|to| pidfd_send_signal(&to.pidfd, Signal::KILL)).collect();
    assert!(sent.iter().all(Result::is_ok), "one of them died before: {sent:?}");
    began
}

/// Sets a scheduling policy; whether we may.
#[expect(clippy::disallowed_methods, reason = "it is waited for, and starts nobody")]
fn chrt(policy: &[&str], of: Pid) -> bool {
    let set = Command::new("chrt").args(policy).arg(of.as_raw_pid().to_string()).output();
    set.expect("chrt of util-linux").status.success()
}
