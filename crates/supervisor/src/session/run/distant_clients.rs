//! Clients that are no ancestors of ours, since a launcher between us has exited. They look like a shell's pipeline, whose first
//! part has written and left, and whose last part only reads; and are to see the tree gone by the bound, as any client is.
//!
//! - Who holds the writing end of our stdin at the start is such a client if it lives on when the input has ended.
//! - It may have written and closed before we had looked. So at the end of the input we look who reads our stdout: neither an
//!   ancestor, as a shell that collects the output of its pipeline, nor a child of one, as the next part of a pipeline.

use std::fs;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::FileType;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;

use super::client::{PipeEnd, ancestors, holds_pipe};

/// How long a process that has begun to exit may take: its files are closed before it is dead.
const EXITING: Duration = Duration::from_millis(100);

/// A process that holds the other end of our stdin or stdout, or did when we looked.
#[derive(Debug)]
pub(super) struct DistantClient {
    pid: u32,
    held: OwnedFd,
}

impl DistantClient {
    fn open(pid: u32) -> Option<Self> {
        let held = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
        Some(Self { pid, held })
    }

    /// Whether it has not left.
    pub(super) fn lives(&self) -> bool {
        let patience = if is_exiting(self.pid) { EXITING } else { Duration::ZERO };
        !self.is_dead_within(patience)
    }

    fn is_dead_within(&self, patience: Duration) -> bool {
        let Ok(patience) = Timespec::try_from(patience) else { return false };
        let mut fds = [PollFd::new(&self.held, PollFlags::IN)];
        poll(&mut fds, Some(&patience)).is_ok_and(|ready| ready > 0)
    }
}

/// Who writes to that file. Looks at every process that can be looked at: not for the way of the first byte.
pub(super) fn writers_of(stdin: BorrowedFd<'_>) -> Vec<DistantClient> {
    at_other_end(stdin, PipeEnd::Writing)
}

/// Whether somebody reads that file who is no part of a pipeline with us. Who cannot be seen is of another user, and is taken for
/// a client: so are the parts of a pipeline not.
pub(super) fn is_read_by_client(stdout: BorrowedFd<'_>) -> bool {
    let readers = at_other_end(stdout, PipeEnd::Reading);
    let (ancestors, own) = (ancestors(), placed(std::process::id()));
    let is_of_pipeline = |reader: &DistantClient| {
        let Some((parent, group)) = placed(reader.pid) else { return true };
        // What has lost its parent falls to the first process, which joins nothing.
        let is_sibling =
            ancestors.contains(&parent) && (parent != 1 || own.is_some_and(|own| own.1 == group));
        ancestors.contains(&reader.pid) || is_sibling
    };
    if readers.is_empty() { is_read_pipe(stdout) } else { !readers.iter().all(is_of_pipeline) }
}

fn is_read_pipe(stdout: BorrowedFd<'_>) -> bool {
    let is_pipe =
        rustix::fs::fstat(stdout).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    is_pipe && poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().is_empty()
}

fn at_other_end(file: BorrowedFd<'_>, end: PipeEnd) -> Vec<DistantClient> {
    let Ok(stat) = rustix::fs::fstat(file) else { return Vec::new() };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => holders(stat.st_ino, end),
        // Who made the pair of sockets.
        FileType::Socket => {
            let maker = rustix::net::sockopt::socket_peercred(file).ok();
            let maker = maker.and_then(|maker| u32::try_from(maker.pid.as_raw_nonzero().get()).ok());
            maker.and_then(DistantClient::open).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn holders(inode: u64, end: PipeEnd) -> Vec<DistantClient> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let found = pids.filter(|pid| holds_pipe(*pid, inode, end)).filter_map(DistantClient::open);
    // Looked at again: who holds it now is whom the pidfd holds.
    found.filter(|client| holds_pipe(client.pid, inode, end)).collect()
}

/// The fields of `/proc/PID/stat` after the name, which may hold anything.
fn fields(pid: u32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    fields.map(str::to_owned).collect()
}

/// Its parent and its group.
fn placed(pid: u32) -> Option<(u32, u32)> {
    let fields = fields(pid);
    Some((fields.get(1)?.parse().ok()?, fields.get(2)?.parse().ok()?))
}

/// Whether it has begun to exit, or at least its first thread has.
pub(in crate::session) fn is_exiting(pid: u32) -> bool {
    /// PF_EXITING of the kernel, in the flags of proc(5).
    const FLAG: u32 = 4;
    let flags = fields(pid).get(6).and_then(|flags| flags.parse().ok());
    flags.is_none_or(|flags: u32| flags & FLAG != 0)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn f09_the_holder_of_the_writing_end_is_found_while_it_holds_it() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let found = writers_of(reader.as_fd());
        assert_eq!(found.iter().map(|writer| writer.pid).collect::<Vec<_>>(), [std::process::id()]);
        assert!(found[0].lives());
        drop(writer);
        assert!(writers_of(reader.as_fd()).is_empty(), "who reads is no writer");
    }

    #[test]
    fn f09_parts_of_our_pipeline_and_files_are_no_clients() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        assert!(!is_read_by_client(writer.as_fd()), "a child of our parent is a part of our pipeline");
        drop(reader);
        assert!(!is_read_by_client(writer.as_fd()));
        let file = fs::File::open("/dev/null").expect("/dev/null");
        assert!(!is_read_by_client(file.as_fd()));
    }

    #[test]
    fn f09_a_process_that_has_ended_has_left() {
        let mut child = moored_containment::Command::new("cat")
            .stdin(moored_containment::Stdio::Pipe)
            .spawn()
            .expect("cat");
        let writer = DistantClient::open(child.identity().pid).expect("a process");
        assert!(writer.lives());
        child.end(moored_containment::Ladder::default()).expect("an end");
        assert!(!writer.lives());
    }
}
