const MOST_VALUES = 20_000;

/**
 * Gives equal texts and plain values one place in memory: thousands of records of one pool say the
 * same. Bounded.
 */
export const sharedValues = (): (<T>(value: T) => T) => {
  const values = new Map<string, unknown>();
  return <T>(value: T): T => {
    const key = typeof value === 'string' ? value : JSON.stringify(value);
    const known = values.get(key);
    if (known !== undefined) return known as T; // of the same text, so of the same shape
    if (values.size >= MOST_VALUES) values.clear();
    values.set(key, value);
    return value;
  };
};
