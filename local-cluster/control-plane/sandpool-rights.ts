import { type Manifest, renderChart } from '../chart.ts';

/** As a role binding names it. */
export type RightsSubject = Readonly<Record<string, string>>;

/** Apart from a real installation. */
const RELEASE = 'test-sandpool';
const TENANT = 'the-tenant';
const RIGHTS = new Set(['ClusterRole', 'ClusterRoleBinding']);

export const clusterRights = (subject: RightsSubject): readonly object[] =>
  rendered()
    .filter(({ kind }) => RIGHTS.has(kind))
    .map((manifest) => boundTo(subject, manifest));

/** With `user` for the daemon. */
export const admissionPolicy = (user: string): readonly object[] => {
  const daemon = `system:serviceaccount:sandpool-system:${RELEASE}`;
  const policies = rendered().filter(({ kind }) => kind.startsWith('ValidatingAdmissionPolicy'));
  return JSON.parse(JSON.stringify(policies).replaceAll(daemon, user)) as readonly object[];
};

export const tenantNamespace = (namespace: string, subject: RightsSubject): readonly object[] =>
  rendered().flatMap((manifest) => {
    if (manifest.kind === 'Namespace')
      return [{ ...manifest, metadata: { ...manifest.metadata, name: namespace } }];
    return manifest.metadata.namespace === TENANT
      ? [boundTo(subject, { ...manifest, metadata: { ...manifest.metadata, namespace } })]
      : [];
  });

const boundTo = (subject: RightsSubject, manifest: Manifest): Manifest =>
  'subjects' in manifest ? { ...manifest, subjects: [subject] } : manifest;

let known: readonly Manifest[] | undefined;
const rendered = (): readonly Manifest[] =>
  (known ??= renderChart({
    release: RELEASE,
    // with all possible rights
    values: {
      namespacePattern: 'the-{team}',
      teams: ['default', 'tenant'],
      role: 'manager',
      clusterId: 'local',
    },
  }).filter(({ kind, metadata }) => kind !== 'Namespace' || metadata.name === TENANT));
