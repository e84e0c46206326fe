//! The batch APIs of the targets that a command names.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use formwork::config::Section;
use formwork::providers::{BatchServer, Protocol, batch_server};
use formwork_batch::{
    AnthropicBatches, FileLimits, OpenAiBatches, ProviderBatch, SharedBatchApi, batch_price,
};
use formwork_extract::{Budget, Extractor};
use serde_json::Value;

use super::WorkArgs;
use crate::exit::Failed;
use crate::targets::Opened;

/// The batch APIs of the targets, by the names of these.
pub(super) struct Files {
    apis: HashMap<String, SharedBatchApi>,
    budgets: Vec<Budget>,
}

/// Returns the batch APIs of the targets, which get the prices of these.
pub(super) fn files(opened: &mut Opened, sections: &[Section]) -> Result<Files, Failed> {
    let mut apis = HashMap::new();
    // Targets whose keys are missing are left out.
    let is_asked = |name: &str| opened.backends.iter().any(|backend| backend.name() == name);
    for section in sections.iter().filter(|section| is_asked(&section.name)) {
        let server = batch_server(section).map_err(Failed::usage)?;
        let Some(BatchServer { protocol, wire, transport }) = server else {
            return Err(Failed::usage(format!(
                "the provider `{}` (kind `{}`) has no batch API that Formwork knows: name one of the kind `openai` or `anthropic`, or \
                 leave out --mode provider-batch",
                section.name, section.common.kind
            )));
        };
        let api: SharedBatchApi = match protocol {
            Protocol::Anthropic => Arc::new(AnthropicBatches::new(wire, transport)),
            _ => Arc::new(OpenAiBatches::new(wire, transport)),
        };
        apis.insert(section.name.clone(), api);
    }
    let budgets = opened.backends.first().and_then(|backend| backend.budget().cloned()).into_iter().collect();
    let backends = std::mem::take(&mut opened.backends).into_iter();
    opened.backends = backends
        .map(|backend| match backend.price() {
            Some(price) => backend.with_price(batch_price(price)),
            None => backend,
        })
        .collect();
    Ok(Files { apis, budgets })
}

impl Files {
    /// Returns the engine for these APIs.
    pub(super) fn engine(self, extractor: Extractor<Value>, args: &WorkArgs) -> ProviderBatch {
        let engine = ProviderBatch::new(extractor).with_interval(Duration::from_secs_f64(args.poll));
        let engine = match args.file_rows.and_then(|rows| usize::try_from(rows).ok()) {
            Some(requests) => engine.with_file_limits(FileLimits { requests, ..FileLimits::default() }),
            None => engine,
        };
        let engine = self.budgets.into_iter().fold(engine, ProviderBatch::with_budget);
        self.apis.into_iter().fold(engine, |engine, (name, api)| engine.with_target(name, api))
    }
}
