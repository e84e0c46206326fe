//! The request that an answer is examined against: by [`examine`](super::examine), and by [`rest`](super::rest) if the answer ended early.

use std::sync::Arc;

use super::drafts::Draft;
use crate::rule::SourceIndex;
use crate::{Ask, Call, Context, Plan};

/// The request that an answer is examined against.
pub(super) struct Question<'a> {
    pub(super) plan: &'a Plan,
    pub(super) call: &'a Call,
    pub(super) ask: &'a Ask,
    /// The draft that a patch is for.
    pub(super) draft: Option<&'a Draft>,
    pub(super) context: Context<'a>,
    pub(super) source: &'a SourceIndex,
    /// The number of the attempt.
    pub(super) attempt: u32,
    /// The text of the answer, as the ledger keeps it.
    pub(super) text: &'a Arc<str>,
    /// The index of the ledger entry that will contain the violations.
    pub(super) entry: usize,
    /// The limit that ended an answer that was cut off.
    pub(super) cut_by: &'static str,
}
