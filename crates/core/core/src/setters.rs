/// Writes setters of a builder whose fields have the names of the parameters. The type of the builder is `#[must_use]`.
///
/// The parameter `Some(field)` sets an optional field; a parameter of the type `impl Into<T>` is converted.
///
/// ```
/// #[derive(Default)]
/// #[must_use]
/// struct Settings {
///     rows: usize,
///     name: Option<String>,
/// }
///
/// impl Settings {
///     formwork_core::setters! {
///         /// Sets the number of rows (default: 0).
///         pub const fn with_rows(rows: usize);
///         /// Sets the name (default: none).
///         pub fn with_name(Some(name): impl Into<String>);
///     }
/// }
///
/// let settings = Settings::default().with_rows(2).with_name("a");
/// assert_eq!((settings.rows, settings.name.as_deref()), (2, Some("a")));
/// ```
#[macro_export]
macro_rules! setters {
    () => {};
    (@ [$($head:tt)*] Some($field:ident): impl Into<$type:ty>) => {
        $($head)*(mut self, $field: impl Into<$type>) -> Self {
            self.$field = Some($field.into());
            self
        }
    };
    (@ [$($head:tt)*] Some($field:ident): $type:ty) => {
        $($head)*(mut self, $field: $type) -> Self {
            self.$field = Some($field);
            self
        }
    };
    (@ [$($head:tt)*] $field:ident: impl Into<$type:ty>) => {
        $($head)*(mut self, $field: impl Into<$type>) -> Self {
            self.$field = $field.into();
            self
        }
    };
    (@ [$($head:tt)*] $field:ident: $type:ty) => {
        $($head)*(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    };
    ($(#[$meta:meta])* pub const fn $name:ident($($field:tt)*); $($rest:tt)*) => {
        $crate::setters! { @ [$(#[$meta])* pub const fn $name] $($field)* }
        $crate::setters! { $($rest)* }
    };
    ($(#[$meta:meta])* pub fn $name:ident($($field:tt)*); $($rest:tt)*) => {
        $crate::setters! { @ [$(#[$meta])* pub fn $name] $($field)* }
        $crate::setters! { $($rest)* }
    };
}
