/** As in Kubernetes: `250m` and `2` of cpu, `256Mi` and `1G` of memory. */

export const QUANTITY_PATTERN = '^(\\d{1,15}(?:\\.\\d{1,9})?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$';
const QUANTITY = new RegExp(QUANTITY_PATTERN);
const SCALE: Readonly<Record<string, number>> = {
  '': 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
};

/** In cores or bytes; undefined if the text is invalid. */
export const parseQuantity = (text: string): number | undefined => {
  const match = QUANTITY.exec(text);
  if (!match) return undefined;
  return Number(match[1]) * (SCALE[match[2] ?? ''] ?? Number.NaN);
};

/** In whole cores or in thousandths of a core. */
export const formatCpu = (cores: number): string => {
  const thousandths = Math.round(cores * 1_000);
  return thousandths % 1_000 === 0 ? String(thousandths / 1_000) : `${thousandths}m`;
};

/** In Mi, rounded up. */
export const formatMemory = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)}Mi`;
