/// The token budget of a document, which determines the bounds of [`Tighten::Bounded`](formwork_core::Tighten).
///
/// ```
/// use formwork_dialect::profile::{LLGUIDANCE, Profile, TokenBudget};
///
/// const ACME: Profile = {
///     let mut acme = LLGUIDANCE.named("acme", "Acme's own API");
///     acme.token_budget = TokenBudget::SERVED;
///     acme
/// };
/// # let _ = ACME;
/// ```
#[derive(Debug, Clone)]
pub struct TokenBudget {
    /// The tokens of an answer without `max_tokens`.
    pub(crate) tokens: u32,
    /// From wide to narrow: the items of an array and the characters of a string. Short lists do less harm than
    /// truncated sentences.
    pub(crate) ladder: &'static [(u64, u64)],
    /// The maximum number of characters of a string.
    pub(crate) text: u64,
}

impl TokenBudget {
    /// The budget of models that continue as long as the schema allows.
    pub const SMALL_MODEL: Self = Self {
        tokens: 512,
        ladder: &[(8, 200), (6, 160), (4, 120), (3, 80), (2, 64), (2, 40), (1, 40), (1, 24), (1, 16)],
        text: 2000,
    };
    /// The budget of servers for models of any size: as long as the tokens allow, at most the counts of a grammar.
    pub const SERVED: Self = Self {
        tokens: 1024,
        ladder: &[
            (256, 200),
            (128, 200),
            (64, 200),
            (32, 200),
            (16, 200),
            (8, 200),
            (6, 160),
            (4, 120),
            (3, 80),
            (2, 64),
            (2, 40),
            (1, 40),
            (1, 24),
            (1, 16),
        ],
        text: 1000,
    };
    /// The budget of models that stop by themselves. Their dialects do not enforce lengths of strings, so the values
    /// are typical ones.
    pub const HOSTED: Self = Self {
        tokens: 8192,
        ladder: &[(1000, 40), (500, 40), (250, 40), (100, 40), (50, 40), (25, 40), (16, 40), (8, 40)],
        text: 40,
    };
}
