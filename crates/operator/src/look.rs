//! What is alive: what each `run` has written in the runtime folder, what it says of itself when asked, and what the
//! process table says of its tree. A `run` that does not answer in time is shown with what is on record.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use moored_containment::{Process, ProcessIdentity, ProcessTable, Record, SessionId, StrengthLevel};
use moored_registry::control::{Reply, Request, RunState, Status};
use moored_registry::{APART, Superseded};
use moored_registry::{RegisteredRun, RunInfo};
use moored_supervisor::event::{Counters, RunId};
use serde::Serialize;

use crate::operator::{Operator, OperatorError};
use crate::processes::measure;
use crate::row::{ClientRow, ContainmentRow, Origin, ProcessRow, ServerRow, Verdict};

/// How long all runs together have to answer `status`.
const STATUS_REPLY_TIMEOUT: Duration = Duration::from_millis(300);

/// A `run` that is alive.
#[derive(Clone, Debug)]
pub struct Live {
    /// What is shown of it.
    pub row: ServerRow,
    /// More of it.
    pub details: Details,
    pub(super) found: RegisteredRun,
    /// Its processes, so that they can be told from others later.
    pub(super) tree: Vec<ProcessIdentity>,
}

/// What `inspect` shows of a live `run` besides its row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Details {
    /// Whether it answered when it was asked.
    pub answers: bool,
    /// The moored process.
    pub moored: ProcessIdentity,
    /// Its guardians, outer and inner.
    pub guardians: Vec<ProcessIdentity>,
    /// The containment of the server.
    pub session: Option<SessionId>,
    /// Where the server's stderr is kept.
    pub log_file: Option<String>,
    /// Where its PID file is.
    pub pid_file: Option<String>,
    /// How many instances of this server may be awake at once.
    pub max_instances: Option<u32>,
    /// How long ago a message last passed.
    pub silent_ms: Option<u64>,
    /// Calls that are not answered yet.
    pub in_flight: Option<u64>,
    /// Resources that the client has subscribed to.
    pub subscriptions: Option<u64>,
    /// What was counted.
    pub counters: Option<Counters>,
    /// What the disk has that is newer than what runs.
    pub newer: Option<String>,
    /// Who has taken its place for the same client.
    pub superseded_by: Option<Superseded>,
}

impl Operator {
    /// Every `run` that is alive, the oldest first.
    ///
    /// # Errors
    /// If a folder or the process table cannot be read.
    pub fn look(&self) -> Result<Vec<Live>, OperatorError> {
        let (mut all, mut records) = (Vec::new(), Vec::new());
        for folder in self.folders() {
            let unreadable = |source| OperatorError::Folder { folder: folder.path().to_path_buf(), source };
            all.extend(RegisteredRun::all(folder).map_err(unreadable)?);
            records.extend(folder.sessions().map_err(unreadable)?.into_iter().map(|found| found.record));
        }
        all.sort_by_key(|found| found.info.order());
        let answers = ask_all(&all, STATUS_REPLY_TIMEOUT);
        let table = ProcessTable::read().map_err(OperatorError::Table)?;
        let facts: Vec<RunInfo> = all.iter().map(|found| found.info.clone()).collect();
        let pids: BTreeMap<RunId, u32> = facts.iter().zip(&answers).map(pid_of).collect();
        let live = all.into_iter().zip(answers).map(|(found, status)| {
            // Each of them knows only what it saw when it last looked; here all are in sight.
            let newer = found.info.superseded_by(&facts, APART);
            let status =
                status.map(|status| Status { superseded_by: newer.or(status.superseded_by), ..status });
            (found, status)
        });
        Ok(live.map(|(found, status)| joined(found, status, &records, &table, &pids)).collect())
    }
}

/// Asks all at once, each in a thread of its own: one that hangs delays the result by `timeout` and no more.
fn ask_all(all: &[RegisteredRun], timeout: Duration) -> Vec<Option<Status>> {
    let mut answers = vec![None; all.len()];
    let (tell, told) = mpsc::channel();
    for (index, found) in all.iter().enumerate() {
        let (found, tell) = (found.clone(), tell.clone());
        let ask = move || {
            if let Ok(Reply::Status(status)) = found.ask(&Request::Status, timeout) {
                // The receiver is gone when the answer comes too late.
                let _ = tell.send((index, *status));
            }
        };
        // Without a thread it has not answered.
        let _ = thread::Builder::new().stack_size(256 << 10).spawn(ask);
    }
    drop(tell);
    let deadline = Instant::now() + timeout;
    while let Ok((index, status)) = told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        answers[index] = Some(status);
    }
    answers
}

/// Who belongs to a `run`, as it says itself or, if it does not answer, as the record of its containment says.
struct Members {
    guardians: Vec<ProcessIdentity>,
    server: Option<ProcessIdentity>,
    session: Option<SessionId>,
}

impl Members {
    fn of(facts: &RunInfo, status: Option<&Status>, records: &[Record]) -> Self {
        if let Some(status) = status {
            let guardians = status.guardians.clone();
            return Self { guardians, server: status.server, session: status.session };
        }
        let record = record_of(facts, records);
        let mut guardians = record.map(|record| record.processes.clone()).unwrap_or_default();
        let server = (guardians.len() > 2).then(|| guardians.remove(2));
        guardians.truncate(2);
        Self { guardians, server, session: record.map(|record| record.id) }
    }

    /// The server and all below it. What lost its parent has fallen to a guardian.
    fn tree<'a>(&self, table: &'a ProcessTable) -> Vec<&'a Process> {
        match (self.guardians.first(), &self.server) {
            (Some(outer), _) if table.get(outer).is_some() => table
                .descendants(outer)
                .into_iter()
                .filter(|process| !self.guardians.contains(&process.identity))
                .collect(),
            (_, Some(server)) => table.get(server).into_iter().chain(table.descendants(server)).collect(),
            _ => Vec::new(),
        }
    }
}

/// The record of its containment. A process with several sessions owns several records: which one it is has to be registered
/// then.
fn record_of<'a>(facts: &RunInfo, records: &'a [Record]) -> Option<&'a Record> {
    let mut own = records.iter().filter(|record| record.owner == facts.moored && !record.ended);
    match facts.session {
        Some(session) => own.find(|record| record.id == session),
        None => own.next().filter(|_| own.next().is_none()),
    }
}

/// The number of its server, or its own if there is none.
fn pid_of((facts, status): (&RunInfo, &Option<Status>)) -> (RunId, u32) {
    let server = status.as_ref().and_then(|status| status.server);
    (facts.run, server.unwrap_or(facts.moored).pid)
}

fn joined(
    found: RegisteredRun,
    status: Option<Status>,
    records: &[Record],
    table: &ProcessTable,
    pids: &BTreeMap<RunId, u32>,
) -> Live {
    let (facts, status) = (&found.info, status.as_ref());
    let members = Members::of(facts, status, records);
    let tree = members.tree(table);
    let measured: Vec<(ProcessRow, f64)> = tree.iter().map(|process| measure(process)).collect();
    let (verdict, reason) = judge(facts, status, table, pids);
    let unheld = ContainmentRow { strength: StrengthLevel::None, layers: Vec::new() };
    let row = ServerRow {
        id: facts.run.to_string(),
        name: facts.name.clone(),
        origin: facts.origin,
        // One that does not answer is judged by its processes and its socket.
        state: match status {
            Some(status) => status.state,
            None if !tree.is_empty() => RunState::Running,
            None if found.has_closed() => RunState::Ending,
            None => RunState::Starting,
        },
        verdict,
        reason,
        pid: members.server.map(|server| server.pid),
        client: facts.client.as_ref().map(|c| ClientRow { pid: c.pid, name: c.name.clone() }),
        command: facts.command.clone(),
        cwd: facts.cwd.to_string_lossy().into_owned(),
        config_file: None,
        started_at: facts.started_at,
        ended_at: None,
        exit_code: None,
        uptime_seconds: facts.age().as_secs_f64(),
        rss_bytes: measured.iter().map(|(row, _)| row.rss_bytes).sum(),
        cpu_percent: measured.iter().map(|(_, cpu)| cpu).sum::<f64>().abs(),
        containment: status.and_then(|s| s.strength.as_ref()).map_or(unheld, ContainmentRow::from),
        processes: measured.into_iter().map(|(row, _)| row).collect(),
        containers: Vec::new(),
        server_version: status.and_then(|status| status.server_version.clone()),
        stale: status.is_some_and(|status| status.stale.is_some()),
        sessions: 1,
        last_activity_at: status.and_then(|status| status.last_activity_at),
    };
    let details = details(facts, status, members);
    Live { row, details, tree: tree.iter().map(|process| process.identity).collect(), found }
}

fn details(facts: &RunInfo, status: Option<&Status>, members: Members) -> Details {
    let text = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
    let counting = status.filter(|_| facts.origin != Origin::Client);
    Details {
        answers: status.is_some(),
        moored: facts.moored,
        guardians: members.guardians,
        session: members.session,
        log_file: facts.log_file.as_ref().map(text),
        pid_file: facts.pid_file.as_ref().map(text),
        max_instances: facts.max_instances,
        silent_ms: status.map(|status| status.silent_ms),
        in_flight: status.map(|status| status.in_flight),
        // A `moored-client` host does not count them.
        subscriptions: counting.map(|status| status.subscriptions),
        counters: counting.map(|status| status.counters),
        newer: status.and_then(|status| status.stale.clone()),
        superseded_by: status.and_then(|status| status.superseded_by),
    }
}

/// Its verdict, and the facts behind it.
fn judge(
    facts: &RunInfo,
    status: Option<&Status>,
    table: &ProcessTable,
    pids: &BTreeMap<RunId, u32>,
) -> (Verdict, String) {
    let alive = |identity: &ProcessIdentity| table.get(identity).is_some_and(|row| !row.is_zombie());
    let (verdict, reason) = match &facts.client {
        None => (Verdict::Unknown, "no client is known to hold its stdin".to_owned()),
        Some(client) => {
            let who = format!("{} ({})", client.name, client.pid);
            match client.identity.as_ref().map(alive) {
                Some(true) if facts.client_holds_stdin => (Verdict::Attached, format!("stdin held by {who}")),
                Some(true) => {
                    (Verdict::Attached, format!("started by {who}; who holds its stdin is not known"))
                }
                Some(false) => (Verdict::Lingering, format!("its client {who} is gone")),
                None => (Verdict::Unknown, format!("its client {who} cannot be looked at")),
            }
        }
    };
    match status {
        None => (verdict, format!("{reason}; does not answer")),
        Some(Status { superseded_by: Some(newer), .. }) if verdict == Verdict::Attached => {
            let by = pids.get(&newer.by).map_or_else(|| newer.by.to_string(), |pid| format!("pid {pid}"));
            let changed = if newer.config_changed { ", config hash changed" } else { "" };
            (Verdict::Superseded, format!("superseded by {by}{changed}; {reason}"))
        }
        Some(_) => (verdict, reason),
    }
}

#[cfg(test)]
#[path = "look_tests.rs"]
mod tests;
