/** A number, or a percentage of the desired size, as text. */
export const MAX_UNAVAILABLE_PATTERN = /^(?:[0-9]{1,5}|(?:100|[0-9]{1,2})%)$/;

/** Rounds a percentage down, like Kubernetes; at least 1, else nothing would ever be replaced. */
export const maxUnavailableOf = (text: string, wanted: number): number => {
  const number = Number.parseInt(text, 10);
  return Math.max(1, text.endsWith('%') ? Math.floor((wanted * number) / 100) : number);
};
