//! Makes support tickets out of customers' messages.

use formwork::{Backend, Error, Extractor, Setup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A support ticket. `schemas/ticket.json` is its contract with the programs that read stored tickets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ticket {
    /// The problem in one line.
    #[schemars(length(min = 1, max = 120))]
    pub title: String,
    /// The part of the product that the customer writes about.
    pub area: Area,
    /// 1 is the most urgent.
    #[schemars(range(min = 1, max = 4))]
    pub priority: u8,
    /// The order that the message names, if it names one.
    pub order: Option<String>,
}

/// A part of the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Area {
    Billing,
    Delivery,
    Account,
    Other,
}

/// Returns the extractor of tickets on the models of this project's `formwork.toml`.
///
/// # Errors
/// Fails if there is no configuration, or if a model that it names cannot be used.
pub async fn extractor() -> Result<Extractor<Ticket>, Error> {
    Setup::find(None).await?.extractor().build()
}

/// Returns the extractor of tickets on one model.
///
/// # Errors
/// Fails if the schema of the ticket cannot be sent to the model.
pub fn extractor_on(model: impl Into<Backend>) -> Result<Extractor<Ticket>, Error> {
    Extractor::builder().with_target(model).build()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use formwork_testkit::Scripted;

    use super::*;

    #[test]
    fn a_priority_that_does_not_exist_is_requested_again() {
        let model = Scripted::new([
            r#"{"title": "Parcel lost", "area": "delivery", "priority": 9, "order": "A-17"}"#,
            r#"{"priority": 2}"#,
        ]);
        let extractor = extractor_on(Arc::new(model)).unwrap();
        let ticket = extractor.extract_blocking("My parcel A-17 never came!").unwrap().value;
        assert_eq!((ticket.area, ticket.priority), (Area::Delivery, 2));
    }
}
