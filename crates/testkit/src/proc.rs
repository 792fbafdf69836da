//! The few facts of `/proc` that the testkit reads, with its own lines: it must not trust the readers under test.
//!
//! A process may vanish between any two reads, so every read tells "gone" apart from "could not look".

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags, open, openat};
use rustix::io::Errno;

/// An open `/proc`, and one buffer for all reads of a scan.
pub(crate) struct Proc {
    root: OwnedFd,
    buffer: Vec<u8>,
}

/// The part of `/proc/PID/stat` that says who a process is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stat {
    pub(crate) comm: String,
    pub(crate) state: char,
    pub(crate) ppid: u32,
    pub(crate) threads: u32,
    pub(crate) start_ticks: u64,
}

impl Proc {
    pub(crate) fn open() -> io::Result<Self> {
        let root = open("/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, buffer: vec![0; 16 << 10] })
    }

    /// All pids of this moment, the newest first: whoever replaces itself all the time must be read at once.
    pub(crate) fn pids(&self) -> io::Result<Vec<u32>> {
        let mut pids = Vec::with_capacity(512);
        for entry in Dir::read_from(self.root.as_fd())? {
            let name = entry?;
            pids.extend(name.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()));
        }
        pids.reverse();
        Ok(pids)
    }

    /// A file of a process, or `None` if the process is gone.
    pub(crate) fn read(&mut self, pid: u32, file: &str) -> io::Result<Option<&[u8]>> {
        let path = format!("{pid}/{file}");
        let opened = match openat(&self.root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT | Errno::SRCH) => return Ok(None),
            other => other?,
        };
        // These files come whole in one read if the buffer holds them, and a scan makes hundreds.
        match rustix::io::retry_on_intr(|| rustix::io::read(&opened, &mut *self.buffer)) {
            Ok(count) => Ok(Some(&self.buffer[..count])),
            Err(Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The soft `RLIMIT_RSS`; the outer `None` means gone, the inner one unlimited.
    pub(crate) fn rss_limit(&mut self, pid: u32) -> io::Result<Option<Option<u64>>> {
        Ok(self.read(pid, "limits")?.map(parse_rss_limit))
    }

    pub(crate) fn stat(&mut self, pid: u32) -> io::Result<Option<Stat>> {
        Ok(self.read(pid, "stat")?.and_then(parse_stat))
    }

    pub(crate) fn cmdline(&mut self, pid: u32) -> io::Result<Option<Vec<String>>> {
        let text = self.read(pid, "cmdline")?;
        Ok(text.map(|bytes| {
            let words = bytes.strip_suffix(b"\0").unwrap_or(bytes).split(|byte| *byte == 0);
            words
                .filter(|_| !bytes.is_empty())
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect()
        }))
    }
}

/// The pids around the one that was given out last. A process that keeps replacing itself is to be found among them,
/// while from any listing it is long gone.
pub(crate) fn newest_pids() -> io::Result<RangeInclusive<u32>> {
    const OLDER: u32 = 48;
    const NEWER: u32 = 8;
    let text = io::read_to_string(File::open("/proc/loadavg")?)?;
    let last = text.split_ascii_whitespace().last().and_then(|word| word.parse::<u32>().ok());
    let last = last.ok_or(io::ErrorKind::InvalidData)?;
    Ok(last.saturating_sub(OLDER)..=last.saturating_add(NEWER))
}

fn parse_rss_limit(limits: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"Max resident set";
    // Where the kernel has put this line since 2.6.24; the search is for a kernel that does otherwise.
    const USUAL_PLACE: usize = 6 * 79;
    let usual = limits.get(USUAL_PLACE..).and_then(|rest| rest.strip_prefix(NAME));
    let line =
        usual.or_else(|| limits.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(NAME)))?;
    let number = line.trim_ascii_start().iter().take_while(|byte| byte.is_ascii_digit()).count();
    str::from_utf8(&line.trim_ascii_start()[..number]).ok()?.parse().ok()
}

fn parse_stat(stat: &[u8]) -> Option<Stat> {
    let text = String::from_utf8_lossy(stat);
    // A comm may hold brackets and spaces of its own; the last bracket is the kernel's.
    let (head, tail) = text.rsplit_once(')')?;
    let mut fields = tail.split_ascii_whitespace();
    Some(Stat {
        comm: head.split_once('(')?.1.to_owned(),
        state: fields.next()?.chars().next()?,
        ppid: fields.next()?.parse().ok()?,
        threads: fields.nth(15)?.parse().ok()?,
        start_ticks: fields.nth(1)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comm_with_brackets_is_read_whole() {
        let line = b"7 (a) (b c) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 4711 0";
        let stat = parse_stat(line).unwrap();
        assert_eq!((&*stat.comm, stat.state, stat.ppid), ("a) (b c", 'S', 1));
        assert_eq!((stat.threads, stat.start_ticks), (3, 4711));
    }

    #[test]
    fn the_limit_is_read_and_unlimited_is_none() {
        let line =
            |value: &str| format!("Max x  1 1\nMax resident set          {value}    {value}   bytes\n");
        assert_eq!(parse_rss_limit(line("1234").as_bytes()), Some(1234));
        assert_eq!(parse_rss_limit(line("unlimited").as_bytes()), None);
    }

    #[test]
    fn we_find_ourselves() {
        let mut proc = Proc::open().unwrap();
        let own = std::process::id();
        assert!(proc.pids().unwrap().contains(&own));
        assert!(proc.stat(own).unwrap().is_some());
        assert_eq!(proc.cmdline(own).unwrap().unwrap(), std::env::args().collect::<Vec<_>>());
        assert_eq!(proc.stat(u32::MAX).unwrap(), None);
    }
}
