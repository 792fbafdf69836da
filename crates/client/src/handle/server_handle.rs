//! What a host holds of a server: a name to call it by, never its life.
//!
//! A handle can be cloned, kept and forgotten. When the set ends the server, calls in flight and all later ones get
//! [`CallError::Ended`], at once.

use std::fmt;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, GetPromptRequestParams, GetPromptResult, Prompt,
    ReadResourceRequestParams, ReadResourceResult, Resource, Tool,
};
use rmcp::{Peer, RoleClient, ServiceError};

use super::call_error::CallError;
use super::lease::Lease;
use crate::server::{Slot, Take};

/// A server of a set. Cheap to clone; holds no process.
///
/// ```
/// use moored_client::{CallError, ServerSet, ServerSpec, SetOptions};
/// use rmcp::model::CallToolRequestParams;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
/// let set = ServerSet::connect(specs, SetOptions::default()).await?;
/// let echo = set.server("echo").expect("it came up");
/// assert_eq!(echo.list_all_tools().await?.len(), 1);
/// echo.call_tool(CallToolRequestParams::new("echo")).await?;
///
/// let escaped = echo.clone();
/// set.shutdown().await;
/// let refused = escaped.call_tool(CallToolRequestParams::new("echo")).await;
/// assert!(matches!(refused, Err(CallError::Ended { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Handle {
    pub(crate) slot: Arc<Slot>,
}

impl Handle {
    /// What it is called in its set.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// # let echo = set.server("echo").expect("it came up");
    /// assert_eq!(echo.name(), "echo");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        self.slot.spec.name()
    }

    /// Whether it has been ended for good.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// # let echo = set.server("echo").expect("it came up");
    /// assert!(!echo.is_ended());
    /// set.replace([]).await?;
    /// assert!(echo.is_ended());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.slot.is_ended()
    }

    /// The server for one's own use, started if it sleeps: for several calls in a row, or a subscription. As long as the
    /// lease is held, the server is not idle, and a replacement waits for it, up to the bound.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// let lease = set.server("echo").expect("it came up").lease().await?;
    /// let answered = lease.list_tools(None).await?;   // all that an rmcp connection can do
    /// assert_eq!(answered.tools[0].name, "echo");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the server has ended or does not come up.
    pub async fn lease(&self) -> Result<Lease, CallError> {
        let mut news = self.slot.watch();
        let name = || self.name().to_owned();
        loop {
            match self.slot.take() {
                Take::Lease { live, epoch } => return Ok(Lease::new(self.slot.clone(), live, epoch)),
                Take::Down { retry_in, cause } => {
                    return Err(CallError::Down { name: name(), retry_in, cause });
                }
                Take::Ended(why) => return Err(CallError::Ended { name: name(), why }),
                // The slot is ours too, so its news do not end.
                Take::NotYet => drop(news.changed().await),
            }
        }
    }

    /// Anything that an rmcp peer can do, as one call.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// let echo = set.server("echo").expect("it came up");
    /// let listed = echo.with(async |peer| peer.list_tools(None).await).await?;
    /// assert_eq!(listed.tools.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the server has ended, ends meanwhile, does not come up, or answers with an error.
    pub async fn with<T, F>(&self, call: impl FnOnce(Peer<RoleClient>) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, ServiceError>>,
    {
        let lease = self.lease().await?;
        lease.race(call(lease.peer().clone())).await
    }

    /// Calls a tool, and answers what the server asks back by the host's handler.
    ///
    /// ```
    /// use rmcp::model::CallToolRequestParams;
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// let echo = set.server("echo").expect("it came up");
    /// let said = echo.call_tool(CallToolRequestParams::new("echo")).await?;
    /// assert_eq!(said.content[0].as_text().expect("a text").text, "hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Handle::with`].
    pub async fn call_tool(&self, params: CallToolRequestParams) -> Result<CallToolResult, CallError> {
        let lease = self.lease().await?;
        lease.race(lease.call_tool(params)).await
    }

    /// Gets a prompt.
    ///
    /// ```
    /// use rmcp::model::GetPromptRequestParams;
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// # let echo = set.server("echo").expect("it came up");
    /// let prompt = echo.get_prompt(GetPromptRequestParams::new("greet")).await?;
    /// assert_eq!(prompt.messages.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Handle::with`].
    pub async fn get_prompt(&self, params: GetPromptRequestParams) -> Result<GetPromptResult, CallError> {
        let lease = self.lease().await?;
        lease.race(lease.get_prompt(params)).await
    }

    /// Reads a resource.
    ///
    /// ```
    /// use rmcp::model::ReadResourceRequestParams;
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// # let echo = set.server("echo").expect("it came up");
    /// let read = echo.read_resource(ReadResourceRequestParams::new("echo:hello")).await?;
    /// assert_eq!(read.contents.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Handle::with`].
    pub async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
    ) -> Result<ReadResourceResult, CallError> {
        let lease = self.lease().await?;
        lease.race(lease.read_resource(params)).await
    }

    /// Every tool, page after page.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// # let echo = set.server("echo").expect("it came up");
    /// assert_eq!(echo.list_all_tools().await?[0].name, "echo");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Handle::with`].
    pub async fn list_all_tools(&self) -> Result<Vec<Tool>, CallError> {
        self.with(async |peer| peer.list_all_tools().await).await
    }

    /// Every prompt, page after page.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// # let echo = set.server("echo").expect("it came up");
    /// assert_eq!(echo.list_all_prompts().await?[0].name, "greet");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Handle::with`].
    pub async fn list_all_prompts(&self) -> Result<Vec<Prompt>, CallError> {
        self.with(async |peer| peer.list_all_prompts().await).await
    }

    /// Every resource, page after page.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// # let echo = set.server("echo").expect("it came up");
    /// assert_eq!(echo.list_all_resources().await?[0].name, "hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Handle::with`].
    pub async fn list_all_resources(&self) -> Result<Vec<Resource>, CallError> {
        self.with(async |peer| peer.list_all_resources().await).await
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("name", &self.name()).field("is_ended", &self.is_ended()).finish()
    }
}
