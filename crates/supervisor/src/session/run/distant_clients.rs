//! Clients that are no ancestors of ours, since a launcher between us has exited. They look like a shell's pipeline, whose first
//! part has written and left, and whose last part only reads; and are to see the tree gone by the bound, as any client is.
//!
//! - Who holds the writing end of our stdin at the start is such a client if it lives on when the input has ended.
//! - It may have written and closed before we had looked. So at the end of the input we look who reads our stdout: neither an
//!   ancestor, as a shell that collects the output of its pipeline, nor a child of one, as the next part of a pipeline.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use moored_containment::process::{HeldProcess, PipeEnd, Process, ancestors, holders_of_pipe};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::FileType;
use rustix::time::Timespec;

use super::client::GENERATIONS;

/// How long a process that has begun to exit may take: its files are closed before it is dead.
const EXITING: Duration = Duration::from_millis(100);

/// Whether a process that holds the other end of our stdin or stdout, or did when we looked, has not left.
pub(super) fn lives(client: &HeldProcess) -> bool {
    !client.is_dead_within(if is_exiting(client.pid()) { EXITING } else { Duration::ZERO })
}

/// Who writes to that file. Looks at every process that can be looked at: not for the way of the first byte.
pub(super) fn writers_of(stdin: BorrowedFd<'_>) -> Vec<HeldProcess> {
    at_other_end(stdin, PipeEnd::Writing)
}

/// Whether a process reads that file that is no part of a pipeline with us. A reader that cannot be seen is another user's, and is taken for
/// a client: so are the parts of a pipeline not.
pub(super) fn is_read_by_client(stdout: BorrowedFd<'_>) -> bool {
    let readers = at_other_end(stdout, PipeEnd::Reading);
    let (ancestors, own) = (ancestors(GENERATIONS), placed(std::process::id()));
    let is_of_pipeline = |reader: &HeldProcess| {
        let Some((parent, group)) = placed(reader.pid()) else { return true };
        // What has lost its parent falls to the first process, which joins nothing.
        let is_sibling =
            ancestors.contains(&parent) && (parent != 1 || own.is_some_and(|own| own.1 == group));
        ancestors.contains(&reader.pid()) || is_sibling
    };
    if readers.is_empty() { is_read_pipe(stdout) } else { !readers.iter().all(is_of_pipeline) }
}

fn is_read_pipe(stdout: BorrowedFd<'_>) -> bool {
    let is_pipe =
        rustix::fs::fstat(stdout).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    is_pipe && poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().is_empty()
}

fn at_other_end(file: BorrowedFd<'_>, end: PipeEnd) -> Vec<HeldProcess> {
    let Ok(stat) = rustix::fs::fstat(file) else { return Vec::new() };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => holders_of_pipe(stat.st_ino, end),
        // Who made the pair of sockets.
        FileType::Socket => {
            let maker = rustix::net::sockopt::socket_peercred(file).ok();
            let maker = maker.and_then(|maker| u32::try_from(maker.pid.as_raw_nonzero().get()).ok());
            maker.and_then(|maker| HeldProcess::with_pid(maker, || true)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Its parent and its group.
fn placed(pid: u32) -> Option<(u32, u32)> {
    Process::of(pid).ok().map(|process| (process.parent, process.group))
}

/// Whether it has begun to exit, or at least its first thread has; one that is gone has.
pub(in crate::session) fn is_exiting(pid: u32) -> bool {
    Process::of(pid).map_or(true, |process| process.is_exiting)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn f09_the_holder_of_the_writing_end_is_found_while_it_holds_it() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let found = writers_of(reader.as_fd());
        assert_eq!(found.iter().map(HeldProcess::pid).collect::<Vec<_>>(), [std::process::id()]);
        assert!(lives(&found[0]));
        drop(writer);
        assert!(writers_of(reader.as_fd()).is_empty(), "who reads is no writer");
    }

    #[test]
    fn f09_parts_of_our_pipeline_and_files_are_no_clients() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        assert!(!is_read_by_client(writer.as_fd()), "a child of our parent is a part of our pipeline");
        drop(reader);
        assert!(!is_read_by_client(writer.as_fd()));
        let file = std::fs::File::open("/dev/null").expect("/dev/null");
        assert!(!is_read_by_client(file.as_fd()));
    }

    #[test]
    fn f09_a_process_that_has_ended_has_left() {
        let mut child = moored_containment::Command::new("cat")
            .stdin(moored_containment::Stdio::Pipe)
            .spawn()
            .expect("cat");
        let writer = HeldProcess::with_pid(child.identity().pid, || true).expect("a process");
        assert!(lives(&writer));
        child.end(moored_containment::Ladder::default()).expect("an end");
        assert!(!lives(&writer));
    }
}
