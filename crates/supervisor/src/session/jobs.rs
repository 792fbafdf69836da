//! What may block, or take its time: done on a thread beside the session, which is told what came of it.
//!
//! Looking at the code on disk, sweeping what dead sessions left, asking other instances to make room, answering an operator
//! whose answer needs the disk. A thread exists only while there is such work.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moored_containment::{ProcessIdentity, ProcessTable, RuntimeDir, SweptSession, sweep};
use moored_launch::{OverLimit, ServerSpec};
use tokio::sync::{mpsc, oneshot};
use tracing::debug;

use super::code::Code;
use super::info::server_info;
use crate::mcp::{Failure, error_line, info_tool};
use crate::on_thread::on_thread;
use moored_registry::CrashMemory;
use moored_registry::control::{Reply, Status};
use moored_registry::{APART, Superseded};
use moored_registry::{NoRoom, make_room, make_room_for_wake};
use moored_registry::{RegisteredRun, RunInfo, RunRegistration, remove_dead};

/// How long a thread that has made room for a wake waits for it, so that the next one to count sees it.
const WAKE_SEEN: Duration = Duration::from_secs(1);
/// How long a thread that makes room may take to give back its turn at the end of the session.
const LAST_TURN: Duration = Duration::from_secs(1);

/// What came of a job.
#[derive(Debug)]
pub(super) enum BackgroundResult {
    /// The code behind the command.
    Code(Option<Code>),
    /// A session whose moored was killed.
    Died(Box<RunInfo>),
    /// What a dead session had left was ended.
    Swept(SweptSession),
    /// Something could not be done.
    Problem(String),
    /// A line for the client, which answers the request with that id.
    Answer(Vec<u8>, Vec<u8>),
    /// There is room for the first start, and it is taken; or there is none.
    FirstRoom(Result<io::Result<RunRegistration>, NoRoom>),
    /// There is room for a server that is to wake. To be told when it has woken.
    WakeRoom(std_mpsc::Sender<()>),
    /// Which newer instance has taken the server's place, and whether the server has started processes since it answered
    /// `initialize`.
    Superseded(Option<Superseded>, StartedProcesses),
    HousekeepingDone,
}

/// Whether a server has started processes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartedProcesses {
    None,
    /// It has, or the process table cannot be read.
    Some,
}

/// The threads of one session.
#[derive(Debug)]
pub(super) struct Jobs {
    tell: mpsc::UnboundedSender<BackgroundResult>,
    results: mpsc::UnboundedReceiver<BackgroundResult>,
    /// Cleared when the session does not wait for room any more.
    is_room_wanted: Arc<AtomicBool>,
    /// Closed when the thread that makes room has given back its turn to count.
    turn: Option<oneshot::Receiver<()>>,
}

impl Jobs {
    pub(super) fn new() -> Self {
        let (tell, results) = mpsc::unbounded_channel();
        Self { tell, results, is_room_wanted: Arc::new(AtomicBool::new(true)), turn: None }
    }

    /// Cancel safe.
    pub(super) async fn next(&mut self) -> BackgroundResult {
        match self.results.recv().await {
            Some(result) => result,
            // We hold a sender ourselves.
            None => std::future::pending().await,
        }
    }

    /// Runs `work` on a thread. `failed` is told instead where no thread can be had.
    fn run(
        &self,
        work: impl FnOnce(&dyn Fn(BackgroundResult)) + Send + 'static,
        failed: impl FnOnce(io::Error) -> Option<BackgroundResult>,
    ) {
        let tell = self.tell.clone();
        let started = on_thread(move || {
            work(&|result| {
                // The session may have ended meanwhile.
                let _ = tell.send(result);
            });
        });
        if let Err(error) = &started {
            debug!(%error, "no thread to be had for a job");
        }
        if let Some(result) = started.err().and_then(failed) {
            let _ = self.tell.send(result);
        }
    }

    /// The code behind a server that was started again may be newer than that of the one before.
    pub(super) fn look_at_code(&self, spec: &ServerSpec) {
        let (command, cwd) = (spec.launch.argv(), spec.cwd());
        // Without a thread it is as if there were no code to look at.
        self.run(move |tell| tell(BackgroundResult::Code(Code::behind(&command, &cwd))), |_| None);
    }

    /// Looks at the code, removes what dead sessions left in the runtime folders, and ends what they left running.
    pub(super) fn run_housekeeping(&self, spec: &ServerSpec) {
        let (command, cwd) = (spec.launch.argv(), spec.cwd());
        let told = self.tell.clone();
        self.run(
            move |tell| {
                tell(BackgroundResult::Code(Code::behind(&command, &cwd)));
                RuntimeDir::all_of_user().iter().for_each(|folder| clean_up(folder, tell));
                tell(BackgroundResult::HousekeepingDone);
            },
            move |error| {
                let problem = format!("cannot look for what dead sessions left: {error}");
                let _ = told.send(BackgroundResult::Problem(problem));
                Some(BackgroundResult::HousekeepingDone)
            },
        );
    }

    /// Answers `get_server_info`, for which the other instances are asked and the code on disk is read.
    pub(super) fn answer_info(
        &self,
        id: Vec<u8>,
        folder: Option<RuntimeDir>,
        facts: RunInfo,
        status: Status,
        code: Option<Code>,
    ) {
        let told = id.clone();
        self.run(
            move |tell| {
                let status = Status { stale: code.and_then(|code| code.stale()), ..status };
                let info = server_info(folder.as_ref(), &facts, &status);
                let line = info_tool::answer(&id, &info);
                tell(BackgroundResult::Answer(id, line));
            },
            move |error| {
                let why = format!("cannot look around: {error}");
                let line = error_line(&told, Failure::NotStarted, &why);
                Some(BackgroundResult::Answer(told, line))
            },
        );
    }

    /// Answers an operator: whether the code on disk is newer takes reading it.
    pub(super) fn answer_status(&self, status: Status, code: Option<Code>, answer: oneshot::Sender<Reply>) {
        let Some(code) = code else {
            // The operator may have left.
            let _ = answer.send(Reply::Status(Box::new(status)));
            return;
        };
        // Where there is no thread the operator goes without that.
        let answer = Arc::new(Mutex::new(Some((status, answer))));
        let unanswered = Arc::clone(&answer);
        let reply = |asked: &Mutex<Option<(Status, oneshot::Sender<Reply>)>>, stale: Option<String>| {
            let taken = asked.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some((status, answer)) = taken {
                let _ = answer.send(Reply::Status(Box::new(Status { stale, ..status })));
            }
        };
        self.run(
            move |_| reply(&answer, code.stale()),
            move |_| {
                reply(&unanswered, None);
                None
            },
        );
    }

    /// Asks other instances to make room for the first start, and takes the place in the runtime folder.
    pub(super) fn make_first_room(&mut self, folder: RuntimeDir, facts: RunInfo, limit: u32, how: OverLimit) {
        let is_wanted = Arc::clone(&self.is_room_wanted);
        let told = facts.clone();
        let folder_without_thread = folder.clone();
        let turn = self.take_turn();
        self.run(
            move |tell| {
                let _turn = turn;
                let is_wanted = || is_wanted.load(Ordering::Relaxed);
                let take = || RunRegistration::take(&folder, &facts);
                tell(BackgroundResult::FirstRoom(make_room(&folder, &facts, limit, how, is_wanted, take)));
            },
            // No instance can be asked, and the client waits.
            move |_| {
                Some(BackgroundResult::FirstRoom(Ok(RunRegistration::take(&folder_without_thread, &told))))
            },
        );
    }

    fn take_turn(&mut self) -> oneshot::Sender<()> {
        let (held, given_back) = oneshot::channel();
        self.turn = Some(given_back);
        held
    }

    /// The session ends: a thread that still makes room gives back its turn, whose file would be left otherwise.
    pub(super) async fn give_back_turn(&mut self) {
        self.leave_queue();
        if let Some(turn) = self.turn.take() {
            // It may wait for an instance that does not answer; its file is removed by the next session then.
            let _ = tokio::time::timeout(LAST_TURN, turn).await;
        }
    }

    /// Room is not waited for any more.
    pub(super) fn leave_queue(&self) {
        self.is_room_wanted.store(false, Ordering::Relaxed);
    }

    /// Asks other instances to make room for a server that is to wake.
    pub(super) fn make_wake_room(&mut self, folder: RuntimeDir, facts: RunInfo, limit: u32) {
        let is_wanted = Arc::clone(&self.is_room_wanted);
        let turn = self.take_turn();
        self.run(
            move |tell| {
                let _turn = turn;
                let is_wanted = || is_wanted.load(Ordering::Relaxed);
                make_room_for_wake(&folder, &facts, limit, is_wanted, || {
                    let (done, is_done) = std_mpsc::channel();
                    tell(BackgroundResult::WakeRoom(done));
                    // An error means that the session has ended.
                    let _ = is_done.recv_timeout(WAKE_SEEN);
                });
            },
            // No instance can be asked, and the client waits.
            |_| Some(BackgroundResult::WakeRoom(std_mpsc::channel().0)),
        );
    }

    /// Looks whether a newer instance has taken the server's place.
    pub(super) fn look_for_successor(
        &self,
        folder: RuntimeDir,
        facts: RunInfo,
        silence: Duration,
        tree: ServerTree,
    ) {
        self.run(
            move |tell| {
                let all = RegisteredRun::all(&folder).unwrap_or_default();
                let newer = facts.superseded_by(all.iter().map(|found| &found.info), APART.min(silence));
                let started = if newer.is_some() { tree.started_processes() } else { StartedProcesses::Some };
                tell(BackgroundResult::Superseded(newer, started));
            },
            |_| Some(BackgroundResult::Superseded(None, StartedProcesses::Some)),
        );
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.leave_queue();
    }
}

/// The processes of a server that are known to be its own from the start.
#[derive(Clone, Debug)]
pub(super) struct ServerTree {
    pub(super) server: ProcessIdentity,
    pub(super) guardians: Vec<ProcessIdentity>,
    /// When the server answered `initialize`, in clock ticks since boot.
    pub(super) initialized_ticks: u64,
}

impl ServerTree {
    /// Whether the server has started anything since it answered `initialize`. A tick is long enough for both, so what started
    /// in the same one may be such a process.
    fn started_processes(&self) -> StartedProcesses {
        let (Ok(table), Some(outer)) = (ProcessTable::read(), self.guardians.first()) else {
            return StartedProcesses::Some;
        };
        let is_known =
            |process: &ProcessIdentity| self.guardians.contains(process) || *process == self.server;
        // What has lost its parent has fallen to a guardian.
        let has_started = table.descendants(outer).iter().any(|process| {
            !is_known(&process.identity) && process.identity.start_ticks >= self.initialized_ticks
        });
        if has_started { StartedProcesses::Some } else { StartedProcesses::None }
    }
}

fn clean_up(folder: &RuntimeDir, tell: &dyn Fn(BackgroundResult)) {
    CrashMemory::forget_old(folder.path());
    resume_orphans(folder);
    // What cannot be read now is read by the next session.
    for facts in remove_dead(folder).unwrap_or_default() {
        tell(BackgroundResult::Died(Box::new(facts)));
    }
    match sweep(folder) {
        Ok(report) => {
            report.sessions.into_iter().for_each(|session| tell(BackgroundResult::Swept(session)));
        }
        Err(error) => {
            let problem = format!("cannot sweep `{}`: {error}", folder.path().display());
            tell(BackgroundResult::Problem(problem));
        }
    }
}

/// A server can stop the moored that holds it, and outlive its client so; not for longer than until the next session starts.
fn resume_orphans(folder: &RuntimeDir) {
    for found in RegisteredRun::all(folder).unwrap_or_default() {
        let client = found.info.client.as_ref().and_then(|client| client.identity);
        if client.is_some_and(|client| client.is_alive().is_ok_and(|alive| !alive)) {
            found.resume_if_stopped();
        }
    }
}
