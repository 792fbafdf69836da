//! Who is alive of all that a test ever started, seen from outside the mechanism under test.
//!
//! A test starts its programs under a [`Mark`]: soft = hard `RLIMIT_RSS`, which has had no effect since Linux 2.4 and
//! which every descendant inherits. A new session, a cleared environment and closed fds leave it in place, and a plain
//! user can only lower it. moored's own cookie is `RLIMIT_LOCKS`, so one cannot hide a fault of the other.
//!
//! This file looks. [`guard`] ends what is left when a test is over; [`wrap`] starts programs under a mark;
//! `watcher` ends what a test left that was killed itself.
//!
//! | the look | what it proves |
//! |---|---|
//! | one scan finds a process | it was alive |
//! | one scan finds none | little: a lineage that keeps replacing itself may have hopped between two reads |
//! | two scans find none, and nobody vanished or died under them | nobody is left |
//! | many scans find none, somebody vanishes under each, and hunts among the newest pids find none | nobody is left |

pub mod guard;
pub(crate) mod watcher;
pub mod wrap;

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::proc::{Proc, newest_pids};
pub use guard::MarkGuard;
pub use wrap::Wrap;

/// How long to rest between two looks.
const REST: Duration = Duration::from_millis(2);
/// So many empty scans in a row prove emptiness when nobody vanished under them …
const STEADY_SCANS: u32 = 2;
/// … and so many, each with its hunt, when a busy machine lets somebody vanish under each.
const UNSTEADY_SCANS: u32 = 20;
/// How often a hunt looks at the newest pids. A look takes a fraction of a hop.
const LOOKS_PER_HUNT: u32 = 20;

/// A number that all processes of one test carry, and nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark(u64);

/// A process that carries a mark.
#[derive(Clone, Debug, PartialEq)]
pub struct Survivor {
    /// Its pid, which means little without `start_ticks`.
    pub pid: u32,
    /// Its parent at the time of the look.
    pub ppid: u32,
    /// When it started, in clock ticks since boot: with the pid, its identity.
    pub start_ticks: u64,
    /// The name of its program, as the kernel cuts it.
    pub comm: String,
    /// The kernel's letter for its state.
    pub state: char,
    /// Its arguments; empty for a zombie.
    pub cmdline: Vec<String>,
    threads: u32,
}

impl Mark {
    /// A mark that no other test has.
    pub fn fresh() -> Self {
        let mut bytes = [0; 8];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .expect("the kernel's random source");
        // Below 2^62, so that a nested limit has room above; not small, so that nobody's real limit is hit.
        Self(u64::from_ne_bytes(bytes) >> 2 | 1 << 40)
    }

    /// The mark that another process made.
    pub fn of(value: u64) -> Self {
        Self(value)
    }

    /// The number itself, as it stands in `/proc/PID/limits`.
    pub fn value(self) -> u64 {
        self.0
    }

    /// Runs `program` under this mark as the current user. The caller sets stdio and environment, and spawns.
    pub fn wrap<I>(self, program: impl AsRef<std::ffi::OsStr>, args: I) -> Command
    where
        I: IntoIterator,
        I::Item: AsRef<std::ffi::OsStr>,
    {
        self.wrapping().command(program, args)
    }

    /// As [`Mark::wrap`], with another user, a cgroup or limits.
    pub fn wrapping(self) -> Wrap {
        Wrap::new(self)
    }

    /// A guard that ends all that carries this mark when it goes out of scope.
    pub fn guard(self) -> MarkGuard {
        MarkGuard::new(self)
    }

    /// All processes with the mark that can still run; a look of one moment, see the module's table.
    pub fn alive(self) -> Vec<Survivor> {
        self.scan().found.into_iter().filter(Survivor::is_alive).collect()
    }

    /// As [`Mark::alive`], with the dead whom nobody has reaped.
    pub fn alive_and_zombies(self) -> Vec<Survivor> {
        self.scan().found
    }

    /// Waits until nobody is left, and tells how long that took; else who is left.
    pub fn wait_until_none(self, deadline: Duration) -> Result<Duration, Vec<Survivor>> {
        let start = Instant::now();
        let mut first_empty = None;
        let (mut steady, mut unsteady) = (0, 0);
        let mut known_dead = HashSet::new();
        loop {
            let scan = self.scan();
            let (mut alive, dead): (Vec<_>, Vec<_>) = scan.found.into_iter().partition(Survivor::is_alive);
            // A generation that was listed alive and read dead has a successor, which the listing may lack.
            let dead: HashSet<_> = dead.iter().map(|dead| (dead.pid, dead.start_ticks)).collect();
            let is_steady = scan.nobody_vanished && dead.is_subset(&known_dead);
            known_dead = dead;
            if alive.is_empty() && !is_steady {
                alive = self.hunt().expect("/proc");
            }
            if alive.is_empty() {
                first_empty.get_or_insert_with(|| start.elapsed());
                steady += u32::from(is_steady);
                unsteady += 1;
            } else {
                (first_empty, steady, unsteady) = (None, 0, 0);
            }
            if let Some(took) = first_empty
                && (steady >= STEADY_SCANS || unsteady >= UNSTEADY_SCANS)
            {
                return Ok(took);
            }
            // A run of empty scans is seen to its end, even past the deadline: it began within.
            if first_empty.is_none() && start.elapsed() > deadline {
                return Err(alive);
            }
            std::thread::sleep(REST);
        }
    }

    /// Waits until at least `count` are alive at one look; the error has those that were found at the last.
    pub fn wait_until_at_least(
        self,
        count: usize,
        deadline: Duration,
    ) -> Result<Vec<Survivor>, Vec<Survivor>> {
        let start = Instant::now();
        loop {
            let alive = self.alive();
            if alive.len() >= count {
                return Ok(alive);
            }
            if start.elapsed() > deadline {
                return Err(alive);
            }
            std::thread::sleep(REST);
        }
    }

    fn scan(self) -> Scan {
        self.try_scan().expect("/proc, whose limits and stat all may read")
    }

    fn try_scan(self) -> io::Result<Scan> {
        let mut proc = Proc::open()?;
        let mut scan = Scan { found: Vec::new(), nobody_vanished: true };
        for pid in proc.pids()? {
            match self.look_at(&mut proc, pid)? {
                Sight::Ours(survivor) => scan.found.push(survivor),
                Sight::Foreign => {}
                Sight::Gone => scan.nobody_vanished = false,
            }
        }
        Ok(scan)
    }

    /// Looks for a lineage that hops, where its next generation must turn up.
    fn hunt(self) -> io::Result<Vec<Survivor>> {
        let mut proc = Proc::open()?;
        for _ in 0..LOOKS_PER_HUNT {
            for pid in newest_pids()? {
                match self.look_at(&mut proc, pid)? {
                    Sight::Ours(survivor) if survivor.is_alive() => return Ok(vec![survivor]),
                    _ => {}
                }
            }
        }
        Ok(Vec::new())
    }

    fn look_at(self, proc: &mut Proc, pid: u32) -> io::Result<Sight> {
        Ok(match proc.rss_limit(pid)? {
            None => Sight::Gone,
            Some(limit) if limit != Some(self.0) => Sight::Foreign,
            Some(_) => Survivor::read(proc, pid)?.map_or(Sight::Gone, Sight::Ours),
        })
    }
}

impl Survivor {
    fn read(proc: &mut Proc, pid: u32) -> io::Result<Option<Self>> {
        let Some(stat) = proc.stat(pid)? else { return Ok(None) };
        let Some(cmdline) = proc.cmdline(pid)? else { return Ok(None) };
        Ok(Some(Self {
            pid,
            ppid: stat.ppid,
            start_ticks: stat.start_ticks,
            comm: stat.comm,
            state: stat.state,
            cmdline,
            threads: stat.threads,
        }))
    }

    /// Whether it can still run. A dead first thread shows as a zombie while others of the process go on.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X') || (self.state == 'Z' && self.threads > 1)
    }
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, ppid, state, comm, start_ticks, .. } = self;
        write!(f, "{pid} ({comm}, {state}, parent {ppid}, started {start_ticks}): {}", self.cmdline.join(" "))
    }
}

enum Sight {
    Ours(Survivor),
    Foreign,
    Gone,
}

struct Scan {
    found: Vec<Survivor>,
    nobody_vanished: bool,
}
