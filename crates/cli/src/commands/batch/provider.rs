//! The batch APIs of the targets that a command names.

use std::collections::HashMap;
use std::time::Duration;

use formwork::config::Section;
use formwork::providers::{Kind, Providers};
use formwork::wire::batch::{FileLimits, SharedBatchApi};
use formwork_batch::ProviderBatch;
use formwork_extract::{Budget, Extractor};
use serde_json::Value;

use super::session::Settings;
use crate::exit::Failed;
use crate::targets::Opened;

/// The batch APIs of the targets, by the names of these.
pub(super) struct Files {
    apis: HashMap<String, SharedBatchApi>,
    budgets: Vec<Budget>,
}

/// Returns the batch APIs of the targets, which get the prices of these.
pub(super) fn files(
    opened: &mut Opened,
    sections: &[Section],
    providers: &Providers,
) -> Result<Files, Failed> {
    let mut apis = HashMap::new();
    // Targets whose keys are missing are left out.
    let is_asked = |name: &str| opened.backends.iter().any(|backend| backend.name() == name);
    for section in sections.iter().filter(|section| is_asked(&section.name)) {
        let Some(api) = providers.batch(section).map_err(Failed::usage)? else {
            let kinds = providers.kinds().filter(|kind| kind.has_batch()).map(Kind::name);
            return Err(Failed::usage(format!(
                "the provider `{}` (kind `{}`) has no batch API that Formwork knows: name one of the kind `{}`, or leave out --mode \
                 provider-batch",
                section.name,
                section.common.kind,
                kinds.collect::<Vec<_>>().join("` or `")
            )));
        };
        apis.insert(section.name.clone(), api);
    }
    let budgets = opened.backends.first().and_then(|backend| backend.budget().cloned()).into_iter().collect();
    let backends = std::mem::take(&mut opened.backends).into_iter();
    opened.backends = backends
        .map(|backend| match backend.price() {
            Some(price) => backend.with_price(price.in_batch()),
            None => backend,
        })
        .collect();
    Ok(Files { apis, budgets })
}

impl Files {
    /// Returns the engine for these APIs.
    pub(super) fn engine(self, extractor: Extractor<Value>, settings: &Settings) -> ProviderBatch {
        let engine = ProviderBatch::new(extractor).with_interval(Duration::from_secs_f64(settings.poll));
        let engine = match settings.file_rows.and_then(|rows| usize::try_from(rows).ok()) {
            Some(requests) => engine.with_file_limits(FileLimits { requests, ..FileLimits::default() }),
            None => engine,
        };
        let engine = self.budgets.into_iter().fold(engine, ProviderBatch::with_budget);
        self.apis.into_iter().fold(engine, |engine, (name, api)| engine.with_target(name, api))
    }
}
