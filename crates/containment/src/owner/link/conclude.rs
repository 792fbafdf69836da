//! How the owner comes to its report: from a guardian that has finished, or by itself when there is none any more.

use std::time::{Duration, Instant};

use super::{EndError, Link, SLACK};
use crate::owner::report::{EndReason, EndReport};
use crate::shared::board::Word;
use crate::sweep::execution::sweep_own;

const SIGKILL: i32 = 9;

impl Link {
    /// A guardian says that it has finished: the report is on the board, and the outer guardian is collected. One that
    /// says so and stays is stuck, or a process that has its socket has said it: it is killed, and unless the report
    /// is there, the inner guardian sees that and ends the tree.
    pub(super) fn conclude(&mut self) {
        if !self.outer.reap(SLACK) {
            let _ = self.outer.process().send(SIGKILL);
            self.outer.reap(SLACK);
        }
        let board = self.shared.board();
        if board.get(Word::DoneAt) != 0 {
            self.report = Some(EndReport::read(self.id(), self.strength.clone(), board));
        }
    }

    /// Neither guardian came to an end in its time: both are killed, and the rest is done without them.
    pub(crate) fn give_up_on_both(&mut self) -> Result<(), EndError> {
        let _ = self.outer.process().send(SIGKILL);
        if let Some(inner) = &self.inner {
            let _ = inner.send(SIGKILL);
        }
        // Another process may hold the socket open; that changes nothing.
        if !self.wait_for_report(Some(SLACK))? {
            self.conclude_alone()?;
        }
        Ok(())
    }

    /// Both guardians are gone without a word. The server died with the inner one; its orphans carry the mark.
    pub(super) fn conclude_alone(&mut self) -> Result<(), EndError> {
        self.outer.reap(SLACK);
        let began = Instant::now();
        let board = self.shared.board();
        let mut report = EndReport::read(self.id(), self.strength.clone(), board);
        // They may have come to the end of the tree before they were killed; then only what comes after is left to do.
        let tree_done = board.get(Word::TreeDone) != 0;
        let mut record = self.record.clone();
        if report.on_end.is_some() {
            record.on_end = Vec::new();
        }
        let mut found = self.file.as_ref().and_then(|file| file.reopen().ok().flatten());
        if let Some(found) = &mut found {
            // We take the lock, so that no sweep runs meanwhile; one that was quicker has done all of it.
            let _ = found.claim();
        }
        record.kept.clone_from(&report.kept);
        let swept = sweep_own(&record, found.as_ref())
            .map_err(|source| EndError::Io { session: self.record.id, source })?;
        report.ended.kill += swept.ended.len() as u64;
        report.survivors.extend(swept.survivors);
        report.kept = swept.kept;
        report.on_end = report.on_end.or(swept.on_end);
        report.took = match board.get(Word::EndedSince) {
            0 => began.elapsed(),
            since => Duration::from_nanos(crate::sys::now_in_nanos().saturating_sub(since)),
        };
        report.verified &= tree_done && report.survivors.is_empty();
        if !tree_done {
            report.reason = EndReason::GuardiansDied;
        }
        self.report = Some(report);
        Ok(())
    }
}
