//! What an ending was: the one value that is handed out, shown and stored.

use std::time::Duration;

use crate::owner::strength::Strength;
use crate::process::identity::{BootId, ProcessIdentity};
use crate::record::cookie::SessionId;
use crate::shared::board::{self, Board, Word, proof, reason, survived};

/// Why a session ended; the first reason stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum EndReason {
    /// The server ended by itself.
    ServerExited,
    /// The owner asked for it.
    Requested,
    /// The owner dropped the handle.
    Dropped,
    /// The owner is dead.
    OwnerDied,
    /// The owner lives, but closed its end without a word.
    OwnerLetGo,
    /// One guardian was killed, and the other ended the tree.
    GuardianDied,
    /// Both guardians were killed, and the owner cleaned up by record and mark.
    GuardiansDied,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ServerExit {
    /// It exited with this code.
    Code(i32),
    /// It died by this signal.
    Signal(i32),
}

impl ServerExit {
    pub(crate) fn from_word(word: u64) -> Option<Self> {
        if word & board::HAS_STATUS == 0 {
            return None;
        }
        let status = (word & 0xffff) as i32;
        Some(match status & 0x7f {
            0 => Self::Code(status >> 8),
            signal => Self::Signal(signal),
        })
    }

    /// The code that a wrapper passes on: the server's own, or 128 + the signal.
    #[must_use]
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// Whether it exited with code 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

/// One step of an ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum StepName {
    /// Input closed; waiting for the server to finish.
    Close,
    /// SIGTERM sent; waiting for the tree to finish.
    Terminate,
    /// SIGKILL sent, until the tree was empty.
    Kill,
    /// The check that it was, and what had to be removed after it.
    Verify,
    /// The `on_end` command.
    OnEnd,
}

/// A step and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Step {
    /// The step.
    pub name: StepName,
    /// How long, in milliseconds where it is written down.
    #[cfg_attr(feature = "serde", serde(rename = "took_ms", with = "millis"))]
    pub took: Duration,
}

/// How many processes ended in which step, counted as the guardians reaped them. One that its own parent reaped first
/// is not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EndedBy {
    /// After the end of input.
    pub eof: u64,
    /// After SIGTERM.
    pub term: u64,
    /// By SIGKILL.
    pub kill: u64,
}

/// How it was proven that nothing is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Proof {
    /// A subreaper, to which every orphan of the tree falls, had no child left.
    NoChildren,
    /// The kernel called the cgroup leaf unpopulated. A process that may do so can leave its leaf, so this alone is a
    /// sign and not a proof.
    Unpopulated,
    /// The first process of the PID namespace was reaped, which the kernel allows only when all others are gone.
    NamespaceReaped,
    /// All children that the subreaper had left were kept ones.
    OnlyKeptLeft,
    /// All children that the subreaper had left, but for kept ones, had ended; a debugger kept it from collecting them.
    OnlyDeadLeft,
}

impl Proof {
    /// Whether nothing else is needed.
    fn suffices(&self) -> bool {
        *self != Self::Unpopulated
    }
}

/// Why a process is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum SurvivorReason {
    /// The kernel does not let us signal it: it runs as another user.
    NotPermitted,
    /// It is in uninterruptible sleep, and dies when it wakes.
    Uninterruptible,
    /// It is in the session's cgroup leaf, but does not carry the session's mark: not ours to touch.
    Foreign,
    /// It was signalled, and is still there.
    Unknown,
}

/// A process that should be gone and is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Survivor {
    /// The process.
    pub process: ProcessIdentity,
    /// Why it is still there.
    pub reason: SurvivorReason,
}

/// What an ending was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EndReport {
    /// Which session.
    pub session: SessionId,
    /// Why it ended.
    pub reason: EndReason,
    /// How the server itself ended; `None` if both guardians were killed before they saw it.
    pub status: Option<ServerExit>,
    /// Each step that was taken, in order.
    pub steps: Vec<Step>,
    /// How many processes ended in which step.
    pub ended: EndedBy,
    /// Those that were meant to live on.
    pub kept: Vec<ProcessIdentity>,
    /// Those that should be gone and are not.
    pub survivors: Vec<Survivor>,
    /// There are more kept ones or survivors than these lists have room for.
    #[cfg_attr(feature = "serde", serde(default))]
    pub lists_cut: bool,
    /// The layers that held.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub strength: Strength,
    /// Whether it is proven that nothing but what was kept is left.
    pub verified: bool,
    /// By what.
    pub proof: Vec<Proof>,
    /// How the `on_end` command ended, if there was one.
    pub on_end: Option<ServerExit>,
    /// From the beginning of the end to its proof, in milliseconds where it is written down.
    #[cfg_attr(feature = "serde", serde(rename = "took_ms", with = "millis"))]
    pub took: Duration,
}

impl EndReport {
    /// Reads the report off the board.
    pub(crate) fn read(session: SessionId, strength: Strength, board: Board<'_>) -> Self {
        let proof = read_proof(board);
        let survivors: Vec<Survivor> =
            (0..board.survivor_count()).filter_map(|i| survivor(board.survivor(i))).collect();
        Self {
            session,
            reason: read_reason(board),
            status: ServerExit::from_word(board.get(Word::ServerStatus)),
            steps: read_steps(board),
            ended: EndedBy {
                eof: board.get(Word::ByEof),
                term: board.get(Word::ByTerm),
                kill: board.get(Word::ByKill),
            },
            kept: (0..board.kept_count())
                .filter_map(|i| {
                    let [pid, ticks, _] = board.kept(i);
                    identity(pid, ticks)
                })
                .collect(),
            verified: proof.iter().any(Proof::suffices) && survivors.is_empty(),
            survivors,
            lists_cut: board.get(Word::ListsCut) != 0,
            strength,
            proof,
            on_end: ServerExit::from_word(board.get(Word::OnEndStatus)),
            took: between(board.get(Word::EndedSince), board.get(Word::DoneAt)),
        }
    }
}

fn identity(pid: u64, start_ticks: u64) -> Option<ProcessIdentity> {
    Some(ProcessIdentity { pid: u32::try_from(pid).ok()?, start_ticks, boot: BootId::current().ok()? })
}

fn survivor([pid, ticks, why]: [u64; 3]) -> Option<Survivor> {
    let reason = match why {
        survived::NOT_PERMITTED => SurvivorReason::NotPermitted,
        survived::UNINTERRUPTIBLE => SurvivorReason::Uninterruptible,
        _ => SurvivorReason::Unknown,
    };
    Some(Survivor { process: identity(pid, ticks)?, reason })
}

fn read_reason(board: Board<'_>) -> EndReason {
    match board.get(Word::Reason) {
        reason::SERVER_EXITED => EndReason::ServerExited,
        reason::REQUESTED => EndReason::Requested,
        reason::DROPPED => EndReason::Dropped,
        reason::OWNER_DIED => EndReason::OwnerDied,
        reason::OWNER_LET_GO => EndReason::OwnerLetGo,
        reason::GUARDIAN_DIED => EndReason::GuardianDied,
        // No guardian lived to give one.
        _ => EndReason::GuardiansDied,
    }
}

fn read_proof(board: Board<'_>) -> Vec<Proof> {
    let bits = board.get(Word::Proof);
    [
        (proof::NO_CHILDREN, Proof::NoChildren),
        (proof::UNPOPULATED, Proof::Unpopulated),
        (proof::NAMESPACE, Proof::NamespaceReaped),
        (proof::ONLY_KEPT, Proof::OnlyKeptLeft),
        (proof::ONLY_DEAD, Proof::OnlyDeadLeft),
    ]
    .into_iter()
    .filter(|(bit, _)| bits & bit != 0)
    .map(|(_, proof)| proof)
    .collect()
}

/// Each step lasts until the next one that was taken.
fn read_steps(board: Board<'_>) -> Vec<Step> {
    let marks = [
        (StepName::Close, Word::CloseAt),
        (StepName::Terminate, Word::TerminateAt),
        (StepName::Kill, Word::KillAt),
        (StepName::Verify, Word::VerifyAt),
        (StepName::OnEnd, Word::OnEndAt),
    ];
    let taken: Vec<(StepName, u64)> =
        marks.into_iter().map(|(name, word)| (name, board.get(word))).filter(|(_, at)| *at != 0).collect();
    let ends = taken.iter().skip(1).map(|(_, at)| *at).chain([board.get(Word::DoneAt)]);
    taken.iter().zip(ends).map(|((name, at), end)| Step { name: *name, took: between(*at, end) }).collect()
}

fn between(from: u64, to: u64) -> Duration {
    if from == 0 { Duration::ZERO } else { Duration::from_nanos(to.saturating_sub(from)) }
}

/// Durations as milliseconds, for people and programs that read the written form.
#[cfg(feature = "serde")]
mod millis {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        // A division rounds once; by way of seconds it would be twice, and show.
        serializer.serialize_f64(duration.as_nanos() as f64 / 1e6)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let millis = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(millis / 1000.0).map_err(serde::de::Error::custom)
    }
}
