/**
 * How many instances a rollout may take away at a time: a number, or a percentage of those that
 * should be there, as text.
 */
export const MAX_UNAVAILABLE_PATTERN = /^(?:[0-9]{1,5}|(?:100|[0-9]{1,2})%)$/;

/**
 * Counts how many of `wanted` instances a rollout may take away. A percentage is rounded down, as
 * Kubernetes does for what may be unavailable; at least 1, or nothing would ever be replaced.
 */
export const maxUnavailableOf = (text: string, wanted: number): number => {
  const number = Number.parseInt(text, 10);
  return Math.max(1, text.endsWith('%') ? Math.floor((wanted * number) / 100) : number);
};
