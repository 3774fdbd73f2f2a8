/** Opens the host or the cluster to a sandbox. */
export interface UnsafeField {
  readonly path: readonly (string | number)[];
  readonly problem: string;
}

/**
 * No template may have these fields, known or not. A `false` requests nothing; the schema refuses
 * it if it is unknown.
 */
const REASONS: Readonly<Record<string, string>> = {
  privileged: 'a privileged container is not isolated from its host',
  allowPrivilegeEscalation: 'its processes could gain privileges',
  procMount: 'it would show hidden parts of /proc',
  hostPath: 'it would show files of the host',
  hostPort: 'it would use a port of the host',
  hostNetwork: "it would share the host's network",
  hostPID: "it would share the host's processes",
  hostIPC: "it would share the host's memory segments and semaphores",
  serviceAccountName: 'it would act as an account of the cluster',
  serviceAccount: 'it would act as an account of the cluster',
  automountServiceAccountToken: 'it would act as an account of the cluster',
};

const PATHS: ReadonlySet<string> = new Set([
  'path',
  'mountPath',
  'subPath',
  'subPathExpr',
  'workingDir',
]);

const MOST_DEPTH = 64;

/** The first unsafe field, at most 64 levels deep. */
export const unsafeFieldIn = (
  value: unknown,
  path: readonly (string | number)[] = [],
): UnsafeField | undefined => {
  if (typeof value !== 'object' || value === null || path.length > MOST_DEPTH) return undefined;
  for (const [key, part] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    const at = [...path, key];
    const reason = typeof key === 'string' ? reasonOf(key, part, path.at(-1)) : undefined;
    if (reason !== undefined) return { path: at, problem: `is refused for safety: ${reason}` };
    const within = unsafeFieldIn(part, at);
    if (within) return within;
  }
  return undefined;
};

const reasonOf = (
  key: string,
  value: unknown,
  parent: string | number | undefined,
): string | undefined => {
  if (value === false || value === undefined || value === null) return undefined;
  if (key === 'add' && parent === 'capabilities')
    return Array.isArray(value) && value.length === 0
      ? undefined
      : 'sandboxes run without capabilities';
  if (PATHS.has(key) && typeof value === 'string' && value.split('/').includes('..'))
    return 'a path must not contain ..';
  return Object.hasOwn(REASONS, key) ? REASONS[key] : undefined;
};
