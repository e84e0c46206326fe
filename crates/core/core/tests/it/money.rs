//! Limits of money are upper bounds: the bill of a provider never exceeds the reserved cost.

use std::sync::Arc;

use formwork_core::*;
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::*;

/// The billing of a provider, within its documentation.
#[derive(Debug, Clone)]
struct Billing {
    reply: Reply,
    /// The bytes per token of text, from 1: each byte of rare scripts is a token.
    bytes: usize,
    /// The tokens of each picture.
    picture: usize,
    /// The tokens around each message.
    around: usize,
    /// The share of the token limit that the answer uses, in per cent, and the share of reasoning in it.
    used: u64,
    reasoned: u64,
}

impl Billing {
    /// Returns the usage of a call. A limit of money always comes with a token limit.
    fn bill(&self, call: &Call) -> Usage {
        let part = |part: &Part| match part {
            Part::Text { text } => text.len().div_ceil(self.bytes),
            Part::Image { .. } => self.picture,
            other => unreachable!("{other:?}"),
        };
        let message = |message: &Arc<Message>| self.around + message.parts.iter().map(part).sum::<usize>();
        let schema = call.schema().map_or(0, |schema| schema.to_string().len().div_ceil(self.bytes));
        let limit = u64::from(call.max_tokens.unwrap());
        let output = limit * self.used / 100;
        let input = (call.messages.iter().map(message).sum::<usize>() + schema) as u64;
        Usage::new(input, output).with_reasoning(output * self.reasoned / 100)
    }

    /// Returns the event of a call. A fault in the middle of a stream is billed like an answer.
    fn event(&self, id: CallId, call: &Call) -> Event {
        let mut event = self.reply.event(id, call);
        match &mut event {
            Event::Answered { completion, .. } => completion.usage = self.bill(call),
            Event::Failed { usage, .. } => *usage = self.bill(call),
            _ => {}
        }
        event
    }
}

fn any_billing() -> impl Strategy<Value = Billing> {
    let replies = [
        Reply::Says(GOOD),
        Reply::Says(BAD_SUM),
        Reply::Says(BAD_RANGE),
        Reply::Says("no JSON here"),
        Reply::Ends("{\"score\": 700", Finish::Length),
        Reply::Ends("I can't.", Finish::Refused),
        Reply::Fails(FaultKind::Overloaded),
        Reply::Fails(FaultKind::Timeout),
        Reply::Fails(FaultKind::SchemaRefused),
    ];
    (select(replies.to_vec()), 1usize..5, 85usize..5_500, 3usize..12, 0u64..=100, 0u64..=100).prop_map(
        |(reply, bytes, picture, around, used, reasoned)| Billing {
            reply,
            bytes,
            picture,
            around,
            used,
            reasoned,
        },
    )
}

fn any_policy() -> impl Strategy<Value = Policy> {
    (1u32..5, select(vec![Patching::Never, Patching::Attempt, Patching::Within(2)])).prop_map(
        |(attempts, patching)| {
            Policy::new(attempts)
                .with_patching(patching)
                .with_stop_on_repeat(false)
                .with_backoff(Backoff::none())
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_bill_is_never_more_than_was_reserved(
        policy in any_policy(),
        script in prop::collection::vec(any_billing(), 1..8),
        prices in prop::collection::vec((0u64..20_000_000, 0u64..80_000_000), 1..4),
        text in "\\PC{0,400}",
        pictures in 0usize..4,
        limit in prop::option::of(1u32..4_000),
        budget in 1u64..2_000_000,
    ) {
        let targets: Vec<_> = prices
            .iter()
            .enumerate()
            .map(|(nth, &(input, output))| target(&format!("t{nth}")).with_price(Price { input, output }))
            .collect();
        let budget = Cost { tokens: u64::MAX, micro_usd: Some(budget) };
        let builder = Plan::new(contract(), targets).with_policy(policy).with_budget(budget);
        let builder = match limit { Some(limit) => builder.with_max_tokens(limit), None => builder };
        let plan = builder.build().unwrap();
        let mut message = Message::user(text);
        for _ in 0..pictures {
            message.parts.push(Part::Image { media_type: "image/png".into(), data: "AAAA".into() });
        }

        let (mut run, mut now, mut calls) = (Run::new(&plan, Input::new([message])), Time(0), 0);
        let mut billed = 0;
        loop {
            match run.step(&plan, now).unwrap() {
                Step::Wait { until, .. } => now = until,
                Step::Done => break,
                Step::Call { id, target, call, reserve, .. } => {
                    let billing = &script[calls % script.len()];
                    let usage = billing.bill(&call);
                    let (input, output) = prices[target];
                    let price = usage.input_tokens * input + usage.output_tokens * output;
                    prop_assert!(price <= reserve.micro_usd.unwrap() * 1_000_000, "{:?}: {:?}", usage, reserve);
                    billed += price;
                    calls += 1;
                    run.on(&plan, now, billing.event(id, &call)).unwrap();
                    let booked = run.ledger().iter().map(|call| call.cost.micro_usd.unwrap()).sum::<u64>();
                    prop_assert!(billed <= booked * 1_000_000, "what was billed is booked, faults included");
                }
                _ => unreachable!("this plan has no checks outside of the run"),
            }
        }
        prop_assert!(billed <= budget.micro_usd.unwrap() * 1_000_000);
    }
}
