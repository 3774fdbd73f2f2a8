/** W3C Trace Context, in lower-case hexadecimal. */
export interface TraceParent {
  /** 32 digits, not all 0. */
  readonly traceId: string;
  /** The client's span. */
  readonly parentId: string;
  readonly sampled: boolean;
}

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Undefined if malformed, since the recommendation says to ignore it then. Reads the fields of
 * version 00 from later versions, whose additions begin with a dash.
 */
export const parseTraceParent = (
  header: string | string[] | undefined,
): TraceParent | undefined => {
  if (typeof header !== 'string') return undefined;
  const [, version, traceId = '', parentId = '', flags = '', more] = FORM.exec(header) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined))
    return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined;
  return { traceId, parentId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
};

export const traceParentText = ({ traceId, parentId, sampled }: TraceParent): string =>
  `00-${traceId}-${parentId}-${sampled ? '01' : '00'}`;
