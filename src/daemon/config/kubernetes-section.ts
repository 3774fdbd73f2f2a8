import { z } from 'zod';
import { isLabelText } from '../../model/templates/placement.ts';
import { choice, duration, path, whole } from './fields.ts';

export const kubernetesSettings = z.strictObject({
  kubeconfig: path(
    "Kubeconfig file for reaching the API server. Unset: the service account of the daemon's Pod.",
  ).optional(),
  context: z
    .string('must be text')
    .min(1, 'must not be empty')
    .max(253)
    .optional()
    .meta({ description: 'Context of the kubeconfig. Unset: its current context.' }),
  runAsUser: whole(1, 2_147_483_647, 'User and group ID of all processes in a sandbox.'),
  terminationGrace: duration(0, 3_600_000, 'Time between SIGTERM and SIGKILL when a sandbox ends.'),
  evictionGrace: duration(
    0,
    3_600_000,
    "Time between SIGTERM and SIGKILL when the cluster ends a sandbox's Pod: by an " +
      'eviction, a drain or a preemption.',
  ),
  protectSandboxes: choice(
    ['on', 'off'],
    'Whether Pods of sandboxes carry annotations that ask the cluster autoscaler and ' +
      'Karpenter to keep their nodes.',
  ),
  runtimeClassName: z
    .string('must be text')
    .max(253)
    .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'must be the name of a RuntimeClass')
    .optional()
    .meta({ description: 'RuntimeClass of Pods whose template does not name one.' }),
  podLabels: z
    .array(
      z
        .string('must be text')
        .max(400)
        .refine(isLabelText, 'must be NAME=VALUE in the form of Kubernetes labels')
        .refine(
          (text) => !/^([-a-z0-9.]+\.)?sandpool\.dev\//.test(text),
          'must not use sandpool.dev; those labels belong to the daemon',
        ),
      'must be a list of labels',
    )
    .max(32)
    .meta({ description: 'Labels for the Pod of every sandbox, each NAME=VALUE.' }),
  registry: z
    .string('must be text')
    .max(255)
    .regex(
      /^([a-z0-9][-a-z0-9.]*)(:[0-9]+)?(\/[a-z0-9][-a-z0-9._]*)*$/,
      'must be HOST or HOST:PORT, optionally with a path',
    )
    .optional()
    .meta({
      description:
        'Registry to use instead of docker.io, such as registry.example.com/mirror, for images ' +
        'that name no registry and need no password. Unset: docker.io.',
    }),
});
