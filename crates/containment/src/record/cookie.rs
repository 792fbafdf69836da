//! The mark that every descendant of a session carries, and sessions inside sessions.
//!
//! RLIMIT_LOCKS has had no effect since Linux 2.4, and is inherited through exec, setsid, cleared environments and
//! closed files. A session sets it, soft and hard, to its cookie. A plain user can only lower it, so a session inside
//! another one takes a lower value out of the outer one's interval:
//!
//! ```text
//!   1 p p p p … p 0 1 1 1 1 … 1        a cookie: a top bit that no real limit has, a random prefix, a zero,
//!   └──── prefix ───┘ └ k ones ┘       and k ones
//! ```
//!
//! The cookie is the top of the interval of all values with the same prefix; the number of trailing ones tells how wide
//! that is. Sessions of depth 0, 1, 2, 3 have 32, 16, 8 and 4 ones; deeper ones have no cookie, and say so.
//!
//! This file is arithmetic only.

use std::fmt;
use std::str::FromStr;

/// A session's name: its cookie, or a random number that is no cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "String", try_from = "String")
)]
pub struct SessionId(u64);

/// Tells our values from any limit that was set on purpose.
const TOP: u64 = 1 << 61;
/// Marks a name that is no cookie.
const NO_COOKIE: u64 = 1 << 62;
/// How many ones a cookie of each depth ends in.
const ONES: [u32; 4] = [32, 16, 8, 4];

impl SessionId {
    /// A name for a session that is started where the limit is `inherited`, out of `random` bits. The same bits give
    /// the same name; the caller sees to it that no two sessions of a user have the same one.
    pub(crate) fn choose(inherited: Option<u64>, random: u64) -> Self {
        let nameless = Self(NO_COOKIE | (random & (TOP - 1)));
        let (around, depth) = match inherited {
            None => (None, 0),
            Some(limit) => match Self(limit).ones() {
                Some(ones) => (Some((limit, ones)), ONES.iter().take_while(|o| **o >= ones).count()),
                None => return nameless,
            },
        };
        let Some(ones) = ONES.get(depth).copied() else { return nameless };
        let tail = (1_u64 << ones) - 1;
        // The bits between the outer prefix and our closing zero are ours to choose.
        let (fixed, free) = match around {
            None => (TOP, TOP - 1),
            Some((limit, outer)) => (limit & !((1 << outer) - 1), (1 << outer) - 1),
        };
        Self(fixed | (random & free & !tail & !(1 << ones)) | tail)
    }

    /// The value for RLIMIT_LOCKS, if this name is one.
    #[must_use]
    pub(crate) fn cookie(self) -> Option<u64> {
        self.ones().map(|_| self.0)
    }

    /// How many ones it ends in; `None` if it is no cookie.
    fn ones(self) -> Option<u32> {
        let ones = self.0.trailing_ones();
        (self.0 >> 61 == 1 && ONES.contains(&ones)).then_some(ones)
    }

    /// Whether a process with this limit belongs to the session, or to one inside it.
    #[must_use]
    pub(crate) fn covers(self, limit: u64) -> bool {
        self.ones().is_some_and(|ones| limit >> ones == self.0 >> ones)
    }

    /// Whether that session was started inside this one.
    #[must_use]
    pub(crate) fn encloses(self, other: Self) -> bool {
        self != other && self.covers(other.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A text that is not a session's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a session id (expected 16 hexadecimal digits)")]
pub struct ParseSessionIdError;

impl FromStr for SessionId {
    type Err = ParseSessionIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != 16 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(ParseSessionIdError);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| ParseSessionIdError)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for SessionId {
    type Error = ParseSessionIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_session_inside_another_lowers_the_limit_and_is_covered(bits in any::<[u64; 4]>()) {
            let mut limit = None;
            let mut around: Vec<SessionId> = Vec::new();
            for random in bits {
                let id = SessionId::choose(limit, random);
                let cookie = id.cookie().expect("four levels have cookies");
                prop_assert!(limit.is_none_or(|outer| cookie <= outer), "a plain user can only lower it");
                prop_assert!(cookie < u64::MAX >> 1, "RLIM_INFINITY must stay far away");
                for outer in &around {
                    prop_assert!(outer.covers(cookie) && outer.encloses(id) && !id.encloses(*outer));
                }
                around.push(id);
                limit = Some(cookie);
            }
            prop_assert_eq!(SessionId::choose(limit, bits[0]).cookie(), None, "the fifth has none");
        }

        #[test]
        fn two_sessions_side_by_side_do_not_cover_each_other(a in any::<u64>(), b in any::<u64>()) {
            let (a, b) = (SessionId::choose(None, a), SessionId::choose(None, b));
            prop_assert!(a == b || !(a.covers(b.0) || b.covers(a.0)));
        }

        #[test]
        fn a_limit_that_somebody_set_on_purpose_is_no_cookie(limit in 0..TOP, random in any::<u64>()) {
            let id = SessionId::choose(Some(limit), random);
            prop_assert_eq!(id.cookie(), None);
            prop_assert!(!id.covers(limit));
        }

        #[test]
        fn names_are_read_back(random in any::<u64>()) {
            let id = SessionId::choose(None, random);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }
    }
}
