//! Who a process is, so that it cannot be mistaken for a later one.
//!
//! A number alone is given out again. The number, the moment at which the process started and the boot in which it did are
//! given out twice only if the first process ended in the 10 ms in which it started, and all other numbers were given out
//! in the same 10 ms: enough to tell a process from a later one, not enough to signal it without a further proof.
//! Wall-clock time has no part in it: it steps, and start ticks do not.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::OnceLock;

use crate::shared::stat::Stat;
use crate::sys;

/// One boot of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "String", try_from = "String")
)]
pub struct BootId(u128);

impl BootId {
    /// The boot that is now.
    ///
    /// # Errors
    /// If the kernel does not tell (no `/proc`).
    pub fn current() -> io::Result<Self> {
        static CURRENT: OnceLock<u128> = OnceLock::new();
        if let Some(known) = CURRENT.get() {
            return Ok(Self(*known));
        }
        let id = sys::boot_id()?;
        Ok(Self(*CURRENT.get_or_init(|| id)))
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for BootId {
    type Err = ParseIdentityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self).map_err(|_| ParseIdentityError)
    }
}

impl From<BootId> for String {
    fn from(id: BootId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for BootId {
    type Error = ParseIdentityError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// A process that cannot be mistaken for a later one.
///
/// ```
/// use moored_containment::ProcessIdentity;
///
/// let me = ProcessIdentity::of(std::process::id())?;
/// assert!(me.is_alive()?);
/// assert_eq!(me.to_string().parse(), Ok(me));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProcessIdentity {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// In which boot.
    pub boot: BootId,
}

impl ProcessIdentity {
    /// The process that has this number now.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is none; others if it cannot be told.
    pub fn of(pid: u32) -> io::Result<Self> {
        let stat = stat_of(pid)?;
        Ok(Self { pid, start_ticks: stat.ticks, boot: BootId::current()? })
    }

    /// Whether that very process is there and not a zombie. "Could not look" is an error, not a no.
    ///
    /// # Errors
    /// If it cannot be told.
    pub fn is_alive(&self) -> io::Result<bool> {
        if self.boot != BootId::current()? {
            return Ok(false);
        }
        match stat_of(self.pid) {
            Ok(stat) => Ok(stat.ticks == self.start_ticks && !stat.is_zombie()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Holds that very process, if it is still there: opened first, looked at then, and alive after that, so that what was
    /// looked at is what is held.
    ///
    /// Start ticks are 10 ms wide, so a process that ended within its first 10 ms may have a successor of the same number
    /// and ticks. A caller that signals by this must know something more of the process: its cookie, its name, its parent
    /// (docs/design/identity.md).
    pub(crate) fn hold(&self) -> io::Result<Option<sys::ProcessFd>> {
        let held = match sys::ProcessFd::open(self.pid) {
            Ok(held) => held,
            Err(error) if gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok((self.is_alive()? && held.is_alive()).then_some(held))
    }
}

/// Holds the process with that number, if it is a child of the held one that has the other number. Both are alive after the
/// parent was read, so neither number was another's meanwhile.
pub(crate) fn hold_child(pid: u32, parent: &sys::ProcessFd, parent_pid: u32) -> Option<sys::ProcessFd> {
    let held = sys::ProcessFd::open(pid).ok()?;
    let named = stat_of(pid).ok()?.ppid.unsigned_abs();
    (named == parent_pid && held.is_alive() && parent.is_alive()).then_some(held)
}

/// No such process, in either of the kernel's ways of saying so.
pub(crate) fn gone(error: &io::Error) -> bool {
    const ESRCH: i32 = 3;
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ESRCH)
}

pub(crate) fn stat_of(pid: u32) -> io::Result<Stat> {
    Stat::parse(&read_stat(pid)?).ok_or_else(|| unreadable(pid))
}

/// The status line; [`io::ErrorKind::NotFound`] if there is no such process.
pub(super) fn read_stat(pid: u32) -> io::Result<Vec<u8>> {
    sys::stat_line(pid).map_err(|error| if gone(&error) { io::ErrorKind::NotFound.into() } else { error })
}

pub(super) fn unreadable(pid: u32) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("cannot read /proc/{pid}/stat"))
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.pid, self.start_ticks, self.boot)
    }
}

/// A text that is not an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a process identity (expected `PID:TICKS@BOOT`)")]
pub struct ParseIdentityError;

impl FromStr for ProcessIdentity {
    type Err = ParseIdentityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (process, boot) = text.split_once('@').ok_or(ParseIdentityError)?;
        let (pid, ticks) = process.split_once(':').ok_or(ParseIdentityError)?;
        Ok(Self {
            pid: pid.parse().map_err(|_| ParseIdentityError)?,
            start_ticks: ticks.parse().map_err(|_| ParseIdentityError)?,
            boot: boot.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_at_another_time_is_somebody_else() {
        let me = ProcessIdentity::of(std::process::id()).expect("own identity");
        let earlier = ProcessIdentity { start_ticks: me.start_ticks.wrapping_sub(1), ..me };
        assert!(me.is_alive().expect("can look"));
        assert!(!earlier.is_alive().expect("can look"));
        assert!(earlier.hold().expect("can look").is_none(), "a recycled number must not be held");
    }

    #[test]
    fn the_same_process_in_another_boot_is_gone() {
        let me = ProcessIdentity::of(std::process::id()).expect("own identity");
        let before = ProcessIdentity { boot: BootId(7), ..me };
        assert!(!before.is_alive().expect("can look"));
    }

    #[test]
    fn nobody_has_an_impossible_number() {
        let error = ProcessIdentity::of(u32::MAX >> 1).expect_err("no such process");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
