//! The sampling parameters that OpenAI's models refuse, by the names of the models.

use formwork_core::{Capabilities, Enforcement};

/// Returns the default capabilities of a model.
pub(crate) fn capabilities(model: &str) -> Capabilities {
    let capabilities = Capabilities::new(Enforcement::Schema)
        .with_tools()
        .with_required_tools()
        .with_seed()
        .with_late_system();
    if refuses_temperature(model) {
        return capabilities;
    }
    capabilities.with_temperature().with_top_p().with_frequency_penalty()
}

/// Returns whether the name is that of an OpenAI model that reasons by default: those refuse temperature and top-p (as of
/// 2026-11). Unknown models are assumed to accept both.
fn refuses_temperature(model: &str) -> bool {
    // Routers prefix the name with the vendor: `openai/gpt-5`.
    let name = model.rsplit('/').next().unwrap_or(model);
    let family =
        |prefix: &str| name.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('-'));
    if ["o1", "o3", "o4"].iter().any(|prefix| family(prefix).is_some()) {
        return true;
    }
    if let Some(rest) = family("gpt-5") {
        return !rest.starts_with("-chat");
    }
    let Some((minor, rest)) =
        name.strip_prefix("gpt-5.").map(|rest| rest.split_at(rest.find('-').unwrap_or(rest.len())))
    else {
        return false;
    };
    let reasons_unasked = minor.parse::<u32>().is_ok_and(|minor| minor >= 5);
    reasons_unasked || rest.starts_with("-pro") || rest.starts_with("-chat")
}

#[cfg(test)]
mod tests {
    use super::refuses_temperature;

    #[test]
    fn names() {
        for name in [
            "o1",
            "o3-mini",
            "gpt-5",
            "gpt-5-mini",
            "openai/gpt-5-pro",
            "gpt-5.2-chat",
            "gpt-5.5",
            "gpt-5.6-mini",
        ] {
            assert!(refuses_temperature(name), "{name}");
        }
        for name in [
            "gpt-4o",
            "gpt-4.1",
            "gpt-5-chat",
            "gpt-5.1",
            "gpt-5.4-mini",
            "openai/gpt-oss-20b",
            "o3000",
            "qwen3:8b",
        ] {
            assert!(!refuses_temperature(name), "{name}");
        }
    }
}
