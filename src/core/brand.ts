// Defines the generic brand. One parser or constructor, in the file that declares a branded scalar, makes the values of that brand. Only
// that file casts to the brand.

/** A `Base` that has passed the check named `Name`. */
export type Brand<Base, Name extends string> = Base & { readonly __brand: Name }
