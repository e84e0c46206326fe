//! Answers to contracts that a key has paid for before.

use formwork_core::evidence::Index;
use formwork_core::{Context, Error, Outcome};
use serde_json::Value;

use super::job::{Digests, Job};
use crate::access::{self, hex};
use crate::ask::{Sampling, Want};
use crate::contracts::{Key, Spec};
use crate::engine::{self, Ready};
use crate::names::Target;
use crate::reply::{Reply, Support};

impl Job {
    /// Returns the digests that a value of this request is cached under: with its contract, and with the question alone, whose value is
    /// judged by another contract before it is used. `None` if nothing is cached.
    pub(super) fn digests(&self, spec: &Spec, ready: &Ready) -> Option<Digests> {
        self.shared.cache_ttl?;
        self.shared.access.ledger()?;
        if self.ask.count > 1 || self.given.is_some() {
            return None;
        }
        let Sampling { seed, top_p, temperature, max_tokens } = self.ask.sampling;
        let parts = (&self.ask.messages, seed, top_p, &self.ask.settings.values);
        let targets: Vec<_> = self.shared.engine.targets(&self.targets).map(Target::identity).collect();
        // The prompts of tools depend on their schemas, so that another contract is another question.
        let question = matches!(self.ask.want, Want::Json { .. }).then(|| {
            let asked = (targets, temperature, max_tokens, &spec.instructions, &spec.examples);
            hex(&Key::new(&[0; 32], &asked).digest(&parts))
        });
        Some((hex(&ready.key.digest(&parts)), question))
    }

    /// Returns the answer that is cached under a digest, unless the client wants a new one.
    pub(super) fn cached(&self, digests: Option<&Digests>, ready: &Ready) -> Option<Reply> {
        if self.options.is_new {
            return None;
        }
        let (ledger, (own, question)) = (self.shared.access.ledger()?, digests?);
        let contract = ready.extractor.plan().contract();
        // The text that a run's answer is about; see `Input::new`.
        let source = self.ask.messages.last().map(|message| message.text()).unwrap_or_default();
        let find = |digest: &str| ledger.cache_get(self.client.id(), digest, access::now()).ok().flatten();
        let value = find(own).and_then(|text| serde_json::from_str::<Value>(&text).ok()).or_else(|| {
            let value = serde_json::from_str(&find(&find(question.as_ref()?)?)?).ok()?;
            let context = Context { source: &source, ..Context::EMPTY };
            contract.judge(&value, &context).is_accepted().then_some(value)
        })?;
        let support = self.options.evidence.then(|| {
            let schema = Some(contract.schema().document());
            Support { evidence: Index::new(&*source).evidence(&value, schema), confidence: None }
        });
        Some(Reply {
            support,
            choices: vec![engine::choice(&self.ask.want, &value)],
            is_cached: true,
            not_stated: contract.not_stated(&value),
            ..Reply::default()
        })
    }

    /// Keeps an accepted value.
    pub(super) fn cache(&self, digests: Option<Digests>, results: &[Result<Outcome<Value>, Error>]) {
        let (Some((own, question)), [Ok(outcome)]) = (digests, results) else { return };
        let (Some(ledger), Some(ttl)) = (self.shared.access.ledger(), self.shared.cache_ttl) else { return };
        let (key, now) = (self.client.id(), access::now());
        ledger.cache_put(key, own.clone(), outcome.value.to_string(), ttl, now);
        if let Some(question) = question {
            ledger.cache_put(key, question, own, ttl, now);
        }
    }
}
