//! Whether a server that ended by itself is started again. How long to wait is `moored_launch`'s back-off; what follows each
//! end of a life is decided in `life`.

use moored_launch::BackOff;

/// What happens when a server ends by itself.
///
/// ```
/// use std::time::Duration;
/// use moored_client::{BackOff, Restart, ServerSpec};
///
/// let patient = BackOff { first: Duration::from_secs(5), ..BackOff::default() };
/// let spec = ServerSpec::new("files", "files-server").restart(Restart::AfterCrash(patient));
/// let once = ServerSpec::new("files", "files-server").restart(Restart::Never);
/// # assert_ne!(spec, once);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restart {
    /// It stays ended, and its handles say so.
    Never,
    /// It is started again, after a wait that grows.
    ///
    /// ```
    /// use moored_client::{BackOff, Restart, ServerSpec};
    ///
    /// let spec = ServerSpec::new("files", "files-server").restart(Restart::AfterCrash(BackOff::default()));
    /// assert_eq!(spec, ServerSpec::new("files", "files-server"), "which is what you get unless told otherwise");
    /// ```
    AfterCrash(BackOff),
}

impl Default for Restart {
    fn default() -> Self {
        Self::AfterCrash(BackOff::default())
    }
}
