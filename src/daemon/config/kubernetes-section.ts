import { z } from 'zod';
import { isLabelText } from '../../model/templates/placement.ts';
import { choice, duration, path, whole } from './fields.ts';

export const kubernetesSettings = z.strictObject({
  kubeconfig: path(
    'How the API server is reached. Unset: as the service account of the Pod that the ' +
      'daemon runs in.',
  ).optional(),
  context: z
    .string('must be text')
    .min(1, 'must not be empty')
    .max(253)
    .optional()
    .meta({ description: 'Context of the kubeconfig. Unset: its current one.' }),
  runAsUser: whole(1, 2_147_483_647, 'User and group that everything in a sandbox runs as.'),
  terminationGrace: duration(0, 3_600_000, 'Between the polite and the hard end of a sandbox.'),
  evictionGrace: duration(
    0,
    3_600_000,
    'Between the polite and the hard end of a sandbox whose Pod the cluster ends: by an ' +
      'eviction, a drain or a preemption.',
  ),
  protectSandboxes: choice(
    ['on', 'off'],
    'Asks the cluster autoscaler and Karpenter to keep the nodes of sandboxes: by annotations ' +
      'that every Pod has.',
  ),
  runtimeClassName: z
    .string('must be text')
    .max(253)
    .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'must be the name of a RuntimeClass')
    .optional()
    .meta({ description: 'RuntimeClass of the Pods whose template names none.' }),
  podLabels: z
    .array(
      z
        .string('must be text')
        .max(400)
        .refine(isLabelText, 'must be NAME=VALUE, as labels of Kubernetes are')
        .refine(
          (text) => !/^([-a-z0-9.]+\.)?sandpool\.dev\//.test(text),
          'must not be of sandpool.dev, whose labels are the daemon’s own',
        ),
      'must be a list of labels',
    )
    .max(32)
    .meta({ description: 'Labels of the Pod of every sandbox, each NAME=VALUE.' }),
  registry: z
    .string('must be text')
    .max(255)
    .regex(
      /^([a-z0-9][-a-z0-9.]*)(:[0-9]+)?(\/[a-z0-9][-a-z0-9._]*)*$/,
      'must be HOST or HOST:PORT, with a path or without',
    )
    .optional()
    .meta({
      description:
        'Registry in the place of docker.io, such as registry.example.com/mirror, for images ' +
        'that name no other and are pulled without a password. Unset: docker.io.',
    }),
});
