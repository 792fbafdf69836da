//! What the watch does about what happened: each step of the ladder, on real processes.

use crate::bare::call::{self, Fd, Waited};
use crate::shared::board::{Word, flag, layer, proof};
use crate::shared::ladder::{Action, Event, State};
use crate::tree::{self, Round, Tree};
use crate::watch::Watch;
use crate::{leaf, proc};

/// Rounds of killing children one level at a time, before the whole depth is walked.
const ROUNDS_BEFORE_WALK: u32 = 4;
/// Consecutive rounds in which the kernel lets us kill none of those that are left, before they are called survivors: they may be
/// about to end by themselves.
const ROUNDS_BEFORE_HOPELESS: u32 = 200;

impl Watch {
    pub(super) fn feed(&mut self, event: Event) {
        let board = self.session.board;
        let now = call::now();
        let before = self.state;
        let (state, action) = self.state.step(&self.ladder, event, now);
        self.state = state;
        if before == State::Running && state != State::Running {
            board.set_once(Word::EndedSince, now);
        }
        self.save();
        match action {
            Action::Nothing => {}
            // The owner closed its end, or is dead: the guardians never had it.
            Action::Close => self.mark(Word::CloseAt),
            Action::Terminate => self.terminate(),
            Action::Kill => self.strike(),
            Action::Verify => self.mark(Word::VerifyAt),
        }
    }

    fn mark(&mut self, step: Word) {
        self.session.board.set_once(step, call::now());
        self.read_rules();
    }

    /// The keep rules are read when an ending begins; before that they are not needed in memory.
    pub(super) fn read_rules(&mut self) {
        if self.rules.count == 0
            && self.session.board.get(Word::KeepRules) > 0
            && let Ok(texts) = self.session.texts()
        {
            self.rules = texts.keep_rules;
        }
    }

    fn terminate(&mut self) {
        self.mark(Word::TerminateAt);
        let (rules, board) = (self.rules, self.session.board);
        if !board.has(Word::Flags, flag::SUBREAPER) {
            tree::signal_group(self.server, call::SIGTERM);
            return tree::signal_group(self.server, call::SIGCONT);
        }
        if let Some(tree) = self.tree() {
            tree::terminate(tree, rules, board);
        }
    }

    /// The first blow of killing: at one stroke where a layer can do that.
    fn strike(&mut self) {
        self.mark(Word::KillAt);
        let none_kept_inside = self.set_kept_aside();
        let session = self.session;
        if let Some(leaf) = self.active_leaf()
            && none_kept_inside
        {
            let _ = leaf::kill(leaf);
        }
        if session.board.has(Word::Layers, layer::PIDNS) && self.twin.is_some() {
            self.leave_it_to_the_namespace();
        } else if self.can_strike_domain() {
            let _ = call::kill(-1, call::SIGKILL);
        }
        if !session.board.has(Word::Flags, flag::SUBREAPER) {
            tree::signal_group(self.server, call::SIGKILL);
        }
    }

    /// Writes down who is kept while they can still be told by their parents, and takes them out of the leaf. Whether
    /// none of them is in it now: the loop can spare, the leaf cannot.
    fn set_kept_aside(&mut self) -> bool {
        let (rules, session, leaf) = (self.rules, self.session, self.active_leaf());
        if rules.count == 0 {
            return true;
        }
        self.tree().is_some_and(|tree| tree::set_kept_aside(&session, tree, rules, leaf))
    }

    pub(super) fn kill_round(&mut self) {
        let (rules, board) = (self.rules, self.session.board);
        if !board.has(Word::Flags, flag::SUBREAPER) {
            return;
        }
        self.refused_rounds = match tree::kill_children(rules, board) {
            Round::Worked => 0,
            Round::AllRefused => self.refused_rounds + 1,
        };
        if self.refused_rounds == ROUNDS_BEFORE_HOPELESS {
            return self.feed(Event::Hopeless);
        }
        self.rounds += 1;
        if self.rounds.is_multiple_of(ROUNDS_BEFORE_WALK)
            && let Some(tree) = self.tree()
        {
            tree::kill_all(tree, rules, board);
        }
    }

    /// We are the first process of the namespace: the kernel kills all the others when we exit, and our parent cannot reap us
    /// before they are gone.
    fn leave_it_to_the_namespace(&mut self) {
        let mut others = 0;
        proc::numbers_in(c"/proc", |_| others += 1);
        self.session.board.add(Word::ByKill, u64::saturating_sub(others, 1));
        if self.server != 0 {
            // It will not be reaped, but it is known what it dies of.
            self.server = 0;
            self.tell_server_exited(call::SIGKILL);
        }
        self.state = State::Ended;
        self.mark(Word::VerifyAt);
    }

    /// The leaf, if the tree was really born into it.
    pub(super) fn active_leaf(&self) -> Option<Fd> {
        self.session.leaf.filter(|_| self.session.board.has(Word::Layers, layer::CGROUP))
    }

    /// The gate of `kill(-1)`: only inside a proven domain (the inner guardian's, never the outer's), never as root,
    /// and not where a PID namespace does it better.
    fn can_strike_domain(&self) -> bool {
        let layers = self.session.board.get(Word::Layers);
        let is_inner = call::getpid() as u64 == self.session.board.get(Word::InnerPid);
        layers & layer::LANDLOCK != 0 && layers & layer::PIDNS == 0 && is_inner && call::getuid() != 0
    }

    fn tree(&mut self) -> Option<&mut Tree> {
        if self.tree.is_none() {
            self.tree = Tree::new();
        }
        self.tree.as_mut()
    }

    /// Proofs, survivors, and the moment at which it was over.
    pub(super) fn conclude(&mut self) {
        let (rules, board) = (self.rules, self.session.board);
        if !board.has(Word::Flags, flag::SUBREAPER) {
            self.end_without_subreaper();
        }
        let _ = self.set_kept_aside();
        if let Some(leaf) = self.active_leaf()
            && leaf::is_empty(leaf)
        {
            board.add_bits(Word::Proof, proof::UNPOPULATED);
        }
        // An empty leaf does not tell that no process has left it.
        if board.get(Word::Proof) & !proof::UNPOPULATED == 0
            && board.has(Word::Flags, flag::SUBREAPER)
            && !board.has(Word::Layers, layer::PIDNS)
            && let Some(tree) = self.tree()
        {
            tree::note_survivors(tree, rules, board);
        }
        if let Some(signals) = self.signals.take() {
            call::close(signals);
        }
        board.set_once(Word::TreeDoneAt, call::now());
    }

    /// A server that is dead and cannot be collected, for a debugger holds it back: `/proc` tells how it ended.
    pub(super) fn learn_status_of_held_server(&mut self) {
        if self.server != 0
            && tree::is_dead(self.server)
            && let Some(status) = proc::exit_status(self.server)
        {
            self.server = 0;
            self.tell_server_exited(status);
        }
    }

    /// A process that left the server's group may still be in the Landlock domain, which cannot be listed: so SIGKILL is sent to
    /// all in it in any case.
    fn end_without_subreaper(&mut self) {
        if self.can_strike_domain() {
            let _ = call::kill(-1, call::SIGKILL);
        }
        while let Waited::Reaped(pid, status) = call::wait_any() {
            if pid == self.server {
                self.server = 0;
                self.tell_server_exited(status);
            }
        }
    }

    /// Leaves the state where the other guardian finds it.
    pub(super) fn save(&mut self) {
        let board = self.session.board;
        board.set(Word::LadderUntil, self.state.deadline().unwrap_or(0));
        board.set(Word::LadderState, self.state.code());
        board.set(Word::LadderGrace, self.ladder.grace.as_nanos() as u64);
        board.set(Word::LadderKillAfter, self.ladder.kill_after.as_nanos() as u64);
    }
}
