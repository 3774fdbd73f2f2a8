import { z } from 'zod';

/**
 * Kubernetes' field names, defaults and bounds, without `host`: a probe only queries the sandbox
 * itself.
 */

const ASKED =
  "On one machine, the probe connects to the sandbox's loopback address. On Kubernetes, the " +
  "kubelet connects to the Pod's address: a server that listens only on 127.0.0.1 is never " +
  'ready there. It must listen on all addresses, or the probe must be an `exec`.';

const MAX_SECONDS = 86_400;
const MAX_THRESHOLD = 1_000;

/** A number, or the name of a port of the container; the document's check finds unknown names. */
export const PortReference = z.union([z.int().min(1).max(65_535), z.string().max(63)], {
  error: 'must be a port from 1 to 65535, or the name of a port of the container',
});

const line = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII');

const HttpGet = z.strictObject({
  path: line(1_024)
    .refine(
      (path) => path.startsWith('/') && !path.includes(' '),
      'must be a path that begins with /',
    )
    .meta({ pattern: '^/[\\x21-\\x7e]*$' })
    .optional(),
  /** Defaults to the endpoint's port in an endpoint's probe. */
  port: PortReference.optional(),
  scheme: z.enum(['HTTP', 'HTTPS']).optional(),
  httpHeaders: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, "must be a header's name"),
        value: line(1_024),
      }),
    )
    .max(16)
    .optional(),
});

const argument = z
  .string()
  .max(8_192)
  .refine((value) => !value.includes('\0'), 'must not contain a NUL')
  .meta({ pattern: '^[^\\u0000]*$' });

export const ReadinessProbeSchema = z
  .strictObject({
    exec: z.strictObject({ command: z.array(argument).min(1).max(64) }).optional(),
    httpGet: HttpGet.optional().describe(ASKED),
    tcpSocket: z.strictObject({ port: PortReference.optional() }).optional().describe(ASKED),
    initialDelaySeconds: z.int().min(0).max(MAX_SECONDS).optional(),
    periodSeconds: z.int().min(1).max(MAX_SECONDS).optional(),
    timeoutSeconds: z
      .int()
      .min(1)
      .max(300)
      .optional()
      .describe(
        'On one machine a probe is stopped after 30 s at the latest, because other probes ' +
          'wait for it.',
      ),
    successThreshold: z.int().min(1).max(MAX_THRESHOLD).optional(),
    failureThreshold: z.int().min(1).max(MAX_THRESHOLD).optional(),
  })
  .refine(
    ({ exec, httpGet, tcpSocket }) => [exec, httpGet, tcpSocket].filter(Boolean).length === 1,
    'must have exactly one of exec, httpGet, tcpSocket',
  );

export type ReadinessProbeDocument = z.infer<typeof ReadinessProbeSchema>;

export type ProbeAction =
  | { readonly kind: 'exec'; readonly argv: readonly string[] }
  | {
      readonly kind: 'http';
      readonly port: number;
      readonly path: string;
      readonly secure: boolean;
      readonly headers: readonly (readonly [name: string, value: string])[];
    }
  | { readonly kind: 'tcp'; readonly port: number };

export interface ReadinessProbe {
  readonly action: ProbeAction;
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

/** `portOf` takes an unset reference too; undefined if it is unknown. */
export const renderProbe = (
  probe: ReadinessProbeDocument,
  portOf: (reference: z.infer<typeof PortReference> | undefined) => number | undefined,
): ReadinessProbe => ({
  action: actionOf(probe, portOf),
  initialDelayMs: (probe.initialDelaySeconds ?? 0) * 1_000,
  periodMs: (probe.periodSeconds ?? 10) * 1_000,
  timeoutMs: (probe.timeoutSeconds ?? 1) * 1_000,
  successThreshold: probe.successThreshold ?? 1,
  failureThreshold: probe.failureThreshold ?? 3,
});

const actionOf = (
  { exec, httpGet, tcpSocket }: ReadinessProbeDocument,
  portOf: Parameters<typeof renderProbe>[1],
): ProbeAction => {
  if (exec) return { kind: 'exec', argv: exec.command };
  const port = portOf((httpGet ?? tcpSocket)?.port) ?? 0; // the document was validated
  if (!httpGet) return { kind: 'tcp', port };
  const headers = (httpGet.httpHeaders ?? []).map(({ name, value }): [string, string] => [
    name,
    value,
  ]);
  return {
    kind: 'http',
    port,
    path: httpGet.path ?? '/',
    secure: httpGet.scheme === 'HTTPS',
    headers,
  };
};
