/**
 * Splits a typed command line into words. An inserted value belongs to one word; there is no
 * quoting.
 */
export const line = (
  texts: TemplateStringsArray,
  ...values: readonly (string | number | undefined)[]
): readonly string[] =>
  texts
    .reduce((before, text, at) => `${before}\0${at - 1}\0${text}`)
    .trim()
    .split(/\s+/)
    .map((word) => word.replaceAll(/\0(\d+)\0/g, (_, at) => String(values[Number(at)])));
