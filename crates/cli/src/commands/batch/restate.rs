//! Batches whose rows are processed by the workers of a Restate server.

use std::sync::Arc;

use formwork::contract::NamedContract;
use formwork::providers::Providers;
use formwork_batch::{Batch, Engine as _, Question, Restate};
use formwork_core::{Context, Contract, Inline};
use formwork_extract::CancellationToken;
use serde_json::Value;

use super::contract::New;
use super::session::{Settings, closed, limited, reopen, with_progress};
use super::{Mode, WorkArgs, contract};
use crate::exit::{Failed, Status};
use crate::flags::set;
use crate::targets::Named;
use crate::{interrupt, pool};

/// The number of rows whose results are waited for at a time (default).
const WAITED: u16 = 1024;

/// Works on a batch with an engine on Restate.
pub(super) fn work(
    mut batch: Batch,
    args: &WorkArgs,
    settings: &Settings,
    named: &Named,
    providers: &Providers,
    reopened: bool,
    new: Option<New>,
) -> Result<Status, Failed> {
    if settings.mode == Mode::ProviderBatch {
        return Err(Failed::usage(
            "--mode provider-batch submits files from this process: leave out --engine restate, or name --mode direct",
        ));
    }
    let Some(url) = &settings.ingress else {
        return Err(Failed::usage(
            "--engine restate needs the address of Restate's ingress: add --ingress, for example --ingress http://127.0.0.1:8080",
        ));
    };
    let transport = pool::transport(url, settings.token_env.as_deref())?;
    // The workers of a named pool are checked against the configuration that the command names, if it names one.
    let pool = pool::pool(settings.pool.as_deref(), named, &settings.retries, providers, named.is_given())?;
    let current = new.as_ref().map_or(&batch.view().spec().contract, |new| &new.contract);
    let satisfies = satisfies(current)?;
    if reopened {
        reopen(&batch)?;
    }
    // The workers have the targets, so only answers of this batch are found again.
    contract::ask(&mut batch, Question::default(), new.as_ref(), satisfies)?;
    let contract = batch.view().spec().contract.clone();
    let rows = usize::from(settings.concurrency.unwrap_or(WAITED));
    let budget = settings.budget.map(|budget| (budget * 1e6) as u64);
    let engine = set(Restate::new(transport, url, pool, contract, rows), budget, Restate::with_budget);
    let ahead = settings.ahead.and_then(|rows| usize::try_from(rows).ok());
    let engine = set(engine, ahead, Restate::with_ahead);
    let batch = Arc::new(limited(batch, args, settings)?);
    let cancel = CancellationToken::new();
    interrupt::run(&cancel, async {
        let ended = with_progress(&batch, engine.run(Arc::clone(&batch) as _, &cancel)).await;
        closed(&batch, ended, args, settings)
    })
}

/// Returns whether a value for a text satisfies a contract, for which no target is needed.
fn satisfies(new: &Value) -> Result<impl Fn(&Value, &str) -> bool + use<>, Failed> {
    let named: NamedContract = serde_json::from_value(new.clone()).map_err(Failed::usage)?;
    let (schema, _) = crate::files::unwrapped(named.schema);
    let structure = formwork_schema::compile(&schema).map_err(Failed::usage)?;
    let contract = Contract::new(Arc::new(Inline::new("answer", schema)), structure);
    let contract = named.rules.into_iter().fold(contract, Contract::with_rule);
    Ok(move |value: &Value, source: &str| {
        contract.judge(value, &Context { source, ..Context::EMPTY }).is_accepted()
    })
}
