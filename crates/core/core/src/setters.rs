/// Writes setters of a builder whose fields have the names of the parameters. The type of the builder is `#[must_use]`. A first line
/// `in field:` sets the fields inside of that field.
///
/// The parameter `Some(field)` sets an optional field; a parameter of the type `impl Into<T>` is converted. A setter `field = value`
/// has no parameter.
///
/// ```
/// #[derive(Default)]
/// struct Limits {
///     tokens: Option<u32>,
/// }
///
/// #[derive(Default)]
/// #[must_use]
/// struct Settings {
///     limits: Limits,
///     rows: usize,
///     name: Option<String>,
///     has_header: bool,
/// }
///
/// impl Settings {
///     formwork_core::setters! {
///         /// Sets the number of rows (default: 0).
///         pub const fn with_rows(rows: usize);
///         /// Sets the name (default: none).
///         pub fn with_name(Some(name): impl Into<String>);
///         /// Adds a header (default: none).
///         pub const fn with_header(has_header = true);
///     }
///
///     formwork_core::setters! {
///         in limits:
///         /// Sets the maximum number of tokens (default: none).
///         pub const fn with_tokens(Some(tokens): u32);
///     }
/// }
///
/// let settings = Settings::default().with_rows(2).with_name("a").with_header().with_tokens(9);
/// assert_eq!((settings.rows, settings.name.as_deref(), settings.has_header), (2, Some("a"), true));
/// assert_eq!(settings.limits.tokens, Some(9));
/// ```
#[macro_export]
macro_rules! setters {
    (@all $place:tt) => {};
    (@all $place:tt $(#[$meta:meta])* pub const fn $name:ident($($field:tt)*); $($rest:tt)*) => {
        $crate::setters! { @one $place [$(#[$meta])* pub const fn $name] $($field)* }
        $crate::setters! { @all $place $($rest)* }
    };
    (@all $place:tt $(#[$meta:meta])* pub fn $name:ident($($field:tt)*); $($rest:tt)*) => {
        $crate::setters! { @one $place [$(#[$meta])* pub fn $name] $($field)* }
        $crate::setters! { @all $place $($rest)* }
    };
    (@one [$($place:tt)*] [$($head:tt)*] Some($field:ident): impl Into<$type:ty>) => {
        $($head)*(mut self, $field: impl Into<$type>) -> Self {
            self.$($place)*$field = Some($field.into());
            self
        }
    };
    (@one [$($place:tt)*] [$($head:tt)*] Some($field:ident): $type:ty) => {
        $($head)*(mut self, $field: $type) -> Self {
            self.$($place)*$field = Some($field);
            self
        }
    };
    (@one [$($place:tt)*] [$($head:tt)*] $field:ident: impl Into<$type:ty>) => {
        $($head)*(mut self, $field: impl Into<$type>) -> Self {
            self.$($place)*$field = $field.into();
            self
        }
    };
    (@one [$($place:tt)*] [$($head:tt)*] $field:ident: $type:ty) => {
        $($head)*(mut self, $field: $type) -> Self {
            self.$($place)*$field = $field;
            self
        }
    };
    (@one [$($place:tt)*] [$($head:tt)*] $field:ident = $value:expr) => {
        $($head)*(mut self) -> Self {
            self.$($place)*$field = $value;
            self
        }
    };
    (in $($place:ident).+: $($setters:tt)+) => {
        $crate::setters! { @all [$($place.)+] $($setters)+ }
    };
    ($(#[$meta:meta])* pub $($setters:tt)+) => {
        $crate::setters! { @all [] $(#[$meta])* pub $($setters)+ }
    };
}
