// The one generic brand. A branded scalar is made by one parser or constructor, in the file that
// declares it; only that file may cast.

/** `Base` that passed the check named `Name`. */
export type Brand<Base, Name extends string> = Base & { readonly __brand: Name }
