//! Rows for other programs: what `--jsonl` takes and gives, and the output of `--json`.
//!
//! `schemas/` holds the JSON Schemas of all of them.

mod batch;
mod check;
mod config;
mod error;
mod extract;
mod lower;
mod oracle;
mod read;
mod server;
mod skill;

pub use batch::{BatchEstimate, BatchOutput, BatchState};
pub use check::{CheckInput, CheckOutput};
pub use config::{ConfigOutput, ConfigProvider, ConfigSetting};
pub use error::RowError;
pub use extract::{ExtractError, ExtractInput, ExtractOutput};
pub use lower::{LowerError, LowerInput, LowerOutput};
pub use oracle::{
    OracleCompareOutput, OracleCompared, OracleError, OracleOutput, OracleVersion, OracleVersionScore,
};
pub use read::{ReadInput, ReadOutput};
pub use server::{DoctorOutput, DoctorState, ModelOutput, ServerModelDetails, ServerModelOutput};
pub use skill::{SkillRow, SkillRunError, SkillRunOutput};
