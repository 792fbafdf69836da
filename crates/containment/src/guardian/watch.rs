//! The loop that runs the ladder: the same for the inner guardian and for an outer one that had to take over.
//!
//! Each turn: collect what has ended, let time pass, do what the ladder says (`act`), wait for the next thing to happen.
//! The ladder's state is written on the board at each step, so that the other guardian goes on from there.

use core::time::Duration;

use crate::bare::call::{self, Fd, PollFd, Waited};
use crate::shared::board::{HAS_STATUS, Word, flag, layer, packet, proof, reason};
use crate::shared::ladder::{Event, Ladder, Rung, State};
use crate::outer::drain;
use crate::session::{List, Session};
use crate::tree::Tree;
use crate::{leaf, tree};

/// How often to look again while killing: nothing tells a parent that a process was handed to it.
const LOOK_AGAIN: u64 = 1_000_000;
/// Most that are collected in one turn: a storm dies as fast as it can be collected, and the ladder must go on meanwhile.
const MOST_A_TURN: u32 = 256;

pub(crate) struct Watch {
    pub(super) session: Session,
    /// 0 when the server is not our child (any more).
    pub(super) server: i32,
    server_ended: bool,
    /// Readable when the server is dead. Our child's death is told by a signal too, but not while a debugger keeps its body:
    /// any process of the tree can be that debugger.
    server_end: Option<Fd>,
    server_died: bool,
    /// There may be more to collect than was collected in this turn.
    in_a_hurry: bool,
    pub(super) ladder: Ladder,
    pub(super) state: State,
    /// The other guardian, while it is to be watched.
    pub(super) twin: Option<Fd>,
    owner: Option<Fd>,
    socket: Option<Fd>,
    pub(super) signals: Option<Fd>,
    pub(super) tree: Option<Tree>,
    pub(super) rules: List,
    pub(super) rounds: u32,
    pub(super) refused_rounds: u32,
}

impl Watch {
    /// The inner guardian's: no end was asked for yet.
    pub(crate) fn begin(session: Session, server: i32, outer: Fd) -> Self {
        let ladder = default_ladder(&session);
        let watch = Self::new(session, server, Some(outer), ladder, State::Running);
        Self { server_end: call::pidfd_open(server).ok(), ..watch }
    }

    /// The outer guardian's, when the inner one is gone: the server dies with the inner one, its orphans are ours.
    pub(crate) fn take_over(session: Session) -> Self {
        let board = session.board;
        let ladder = Ladder {
            grace: Duration::from_nanos(board.get(Word::LadderGrace)),
            kill_after: Duration::from_nanos(board.get(Word::LadderKillAfter)),
            ..default_ladder(&session)
        };
        let state = match State::from_code(board.get(Word::LadderState), board.get(Word::LadderUntil)) {
            // It died after its last step, and before it was done: what is left is ended anew.
            State::Ended => State::Running,
            under_way => under_way,
        };
        // It falls to us too, unless it was reaped already or lives where its number means nothing to us.
        let ours = board.has(Word::Flags, flag::SUBREAPER) && !board.has(Word::Layers, layer::PIDNS);
        let server = board.get(Word::ServerPid) as i32;
        let server =
            if ours && board.get(Word::ServerStatus) == 0 && call::is_child(server) { server } else { 0 };
        let mut watch = Self::new(session, server, None, ladder, state);
        if state != State::Running {
            // It may have died in the middle of a step: with the rules read, and the leaf frozen.
            watch.read_rules();
            if let Some(leaf) = watch.active_leaf() {
                leaf::thaw(leaf);
            }
        }
        watch.feed(Event::End(Rung::Terminate));
        watch
    }

    fn new(session: Session, server: i32, twin: Option<Fd>, ladder: Ladder, state: State) -> Self {
        let mut watch = Self {
            session,
            server,
            server_ended: false,
            server_end: None,
            server_died: false,
            in_a_hurry: false,
            ladder,
            state,
            twin,
            owner: Some(session.owner_pidfd),
            socket: Some(session.owner_socket),
            signals: call::child_signal_fd().ok(),
            tree: None,
            rules: List { block: &[], count: 0 },
            rounds: 0,
            refused_rounds: 0,
        };
        watch.save();
        watch
    }

    /// Until the tree is gone, or cannot be made to go.
    pub(crate) fn run(mut self) {
        loop {
            self.collect();
            self.feed(Event::Tick);
            if self.state == State::Ended {
                break;
            }
            let killing = matches!(self.state, State::Killing { .. });
            if killing {
                self.kill_round();
            }
            self.wait(killing);
        }
        self.conclude();
    }

    // === what happened ===

    fn wait(&mut self, killing: bool) {
        let mut fds = [
            PollFd::readable(self.signals),
            PollFd::readable(self.socket),
            PollFd::readable(self.owner),
            PollFd::readable(self.twin),
            PollFd::readable(self.server_end),
        ];
        let mut patience = self.state.deadline().map(|until| until.saturating_sub(call::now()));
        if killing || self.looks_for_kept() || self.signals.is_none() {
            patience = Some(patience.map_or(LOOK_AGAIN, |p| p.min(LOOK_AGAIN)));
        }
        if self.in_a_hurry {
            patience = Some(0);
        }
        call::poll(&mut fds, patience);
        if fds[0].is_ready()
            && let Some(signals) = self.signals
        {
            drain(signals);
        }
        if fds[1].is_ready() {
            self.hear_owner();
        }
        if fds[2].is_ready() {
            self.owner = None;
            self.because(reason::OWNER_DIED);
            // Its files are closed before its death is told. If the socket is still held, somebody else holds them
            // all, the server's input among them: then no end of input will come, and waiting for it is in vain.
            let held = self.socket.is_some() && !fds[1].is_hung_up() && !self.socket_is_closed();
            self.feed(Event::End(if held { Rung::Terminate } else { Rung::Close }));
        }
        if fds[3].is_ready() {
            self.twin = None;
            self.because(reason::GUARDIAN_DIED);
            // The owner may not even know, and holds the server's input open.
            self.feed(Event::End(Rung::Terminate));
        }
        if fds[4].is_ready() {
            self.server_end = None;
            self.server_died = true;
        }
    }

    /// Whether kept processes have to be told from the others from time to time.
    fn looks_for_kept(&self) -> bool {
        self.rules.count > 0 && self.state != State::Running
    }

    fn socket_is_closed(&self) -> bool {
        let mut fds = [PollFd::readable(self.socket)];
        call::poll(&mut fds, Some(0));
        fds[0].is_hung_up()
    }

    fn hear_owner(&mut self) {
        let mut words = [0_u64; packet::LONGEST];
        match call::receive(self.session.owner_socket, &mut words) {
            Ok(0) => {
                self.socket = None;
                self.because(if self.owner_is_alive() { reason::OWNER_LET_GO } else { reason::OWNER_DIED });
                self.feed(Event::End(Rung::Close));
            }
            Ok(packet::LONGEST) if words[0] == packet::END => self.obey(words),
            // Nothing there after all, or a packet of a later version: its sender sees that nothing comes of it.
            _ => {}
        }
    }

    fn owner_is_alive(&self) -> bool {
        let mut fds = [PollFd::readable(self.owner)];
        call::poll(&mut fds, Some(0));
        self.owner.is_some() && !fds[0].is_ready()
    }

    fn obey(&mut self, words: [u64; packet::LONGEST]) {
        let [_, why, rung, grace, kill_after, verify] = words;
        self.because(why);
        self.ladder.grace = Duration::from_nanos(grace);
        self.ladder.kill_after = Duration::from_nanos(kill_after);
        self.ladder.verify = Duration::from_nanos(verify);
        self.feed(Event::End(Rung::from_code(rung)));
    }

    /// The first reason stays.
    fn because(&self, why: u64) {
        self.session.board.set_once(Word::Reason, why);
    }

    /// Reaps all that has ended, and sees whether anything is left.
    fn collect(&mut self) {
        if !self.session.board.has(Word::Flags, flag::SUBREAPER) {
            return self.collect_without_subreaper();
        }
        let server_lived = self.server != 0;
        self.in_a_hurry = true;
        for _ in 0..MOST_A_TURN {
            match call::wait_any() {
                Waited::Reaped(pid, status) => self.reaped(pid, status),
                Waited::NoneYet => {
                    self.in_a_hurry = false;
                    break;
                }
                Waited::NoChildren => {
                    self.session.board.add_bits(Word::Proof, proof::NO_CHILDREN);
                    return self.feed(Event::Empty);
                }
            }
        }
        if self.server_died {
            self.learn_status_of_held_server();
        }
        if server_lived && self.server == 0 {
            // It left children behind; had it not, `Empty` would have been fed above.
            self.feed(Event::ServerExited);
        }
        // While there are dead children to collect, the list of children proves nothing.
        if !self.in_a_hurry && (self.looks_for_kept() || matches!(self.state, State::Killing { .. })) {
            self.look_who_is_left();
        }
    }

    fn look_who_is_left(&mut self) {
        let look = || tree::proof_by_children(self.rules, self.session.board);
        // Twice: a process that changed parents while the list was read may be missing from it.
        let proof = if look() == 0 { 0 } else { look() };
        if proof != 0 {
            self.session.board.add_bits(Word::Proof, proof);
            self.learn_status_of_held_server();
            self.feed(Event::Empty);
        }
    }

    fn reaped(&mut self, pid: i32, status: i32) {
        match self.state {
            State::Closing { .. } => self.session.board.add(Word::ByEof, 1),
            State::Terminating { .. } => self.session.board.add(Word::ByTerm, 1),
            State::Killing { .. } => self.session.board.add(Word::ByKill, 1),
            // An everyday death: a helper that had lost its parent, or the server itself.
            State::Running | State::Ended => {}
        }
        if pid == self.server {
            self.server = 0;
            self.tell_server_exited(status);
        }
    }

    pub(super) fn tell_server_exited(&mut self, status: i32) {
        self.session.board.set(Word::ServerStatus, u64::from(status as u32) | HAS_STATUS);
        call::send(self.session.owner_socket, &[packet::SERVER_EXITED], None);
        self.because(reason::SERVER_EXITED);
    }

    /// Without subreapers the server is our only child, and stays unreaped so that its group's number stays its own.
    fn collect_without_subreaper(&mut self) {
        if !self.server_ended && self.server != 0 && call::has_ended(self.server) {
            self.server_ended = true;
            self.feed(Event::ServerExited);
        }
        // Taken over from the inner guardian, there is no server: no child of it comes to us, and only a leaf could
        // tell who is left.
        let server_is_over = self.server == 0 || self.server_ended && tree::group_is_empty(self.server);
        if server_is_over && self.leaf_is_empty() {
            self.feed(Event::Empty);
        }
    }

    fn leaf_is_empty(&self) -> bool {
        self.active_leaf().is_none_or(leaf::is_empty)
    }
}

/// The ladder that the owner left for an end that it did not ask for.
fn default_ladder(session: &Session) -> Ladder {
    let time = |word| Duration::from_nanos(session.board.get(word));
    Ladder {
        from: Rung::Close,
        grace: time(Word::Grace),
        kill_after: time(Word::KillAfter),
        verify: time(Word::Verify),
    }
}
