/** Whom the rights are given to, as a role binding names it. */
export type RightsSubject = Readonly<Record<string, string>>;

const GROUP = 'sandpool.dev';
const KINDS = ['sandboxpools', 'sandboxenvs', 'sandboxes', 'apikeys', 'userquotas', 'approvals'] as const;

interface Rule { readonly apiGroups: readonly string[]; readonly resources: readonly string[]; readonly verbs: readonly string[] }

/** In the whole cluster: reading, and writing of what belongs to no namespace. */
const EVERYWHERE: readonly Rule[] = [
  { apiGroups: [GROUP], resources: ['sandboxtemplates', ...KINDS], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [GROUP], resources: ['sandboxtemplates', 'sandboxtemplates/status'], verbs: ['create', 'update', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods', 'nodes'], verbs: ['get', 'list', 'watch'] },
];

/** In each namespace of a tenant. */
const IN_A_TENANT: readonly Rule[] = [
  { apiGroups: [GROUP], resources: [...KINDS], verbs: ['create', 'update', 'patch', 'delete'] },
  { apiGroups: [GROUP], resources: ['sandboxpools/status', 'sandboxenvs/status'], verbs: ['get', 'update', 'patch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['create', 'update', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods/exec', 'pods/attach', 'pods/portforward'], verbs: ['get', 'create'] },
  { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'create', 'update', 'delete'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get', 'list'] },
];

const [EVERYWHERE_NAME, TENANT_NAME] = ['test-sandpool', 'test-sandpool-tenant'];
const RBAC = 'rbac.authorization.k8s.io';

/** The roles, and the binding of what holds everywhere. */
export const clusterRights = (subject: RightsSubject): readonly object[] => [
  { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata: { name: EVERYWHERE_NAME }, rules: EVERYWHERE },
  { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata: { name: TENANT_NAME }, rules: IN_A_TENANT },
  {
    apiVersion: `${RBAC}/v1`, kind: 'ClusterRoleBinding', metadata: { name: EVERYWHERE_NAME }, subjects: [subject],
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: EVERYWHERE_NAME },
  },
];

/** What makes a namespace one of a tenant's. */
export const tenantRights = (namespace: string, subject: RightsSubject): object => ({
  apiVersion: `${RBAC}/v1`, kind: 'RoleBinding', metadata: { name: TENANT_NAME, namespace }, subjects: [subject],
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: TENANT_NAME },
});
