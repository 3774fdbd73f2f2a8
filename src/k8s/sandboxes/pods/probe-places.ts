import type { ReadinessProbe } from '../../../model/templates/readiness-probe.ts';
import type { InstanceDefinition } from '../../../model/templates/template.ts';

export interface PlacedProbe {
  readonly probe: ReadinessProbe;
  /** The endpoint whose probe it is; the container's own where unset. */
  readonly endpoint?: string;
}

/**
 * A kubelet runs one readiness probe of each container, its own first. An endpoint's goes to the
 * container that names its port, else to any that is left: containers of a Pod share their ports; a
 * command belongs to the first.
 */
export const placedProbes = ({
  containers,
  endpoints = {},
}: InstanceDefinition): {
  readonly byContainer: ReadonlyMap<string, PlacedProbe>;
  readonly homeless: readonly string[];
} => {
  const byContainer = new Map<string, PlacedProbe>();
  for (const { name, readinessProbe } of containers)
    if (readinessProbe) byContainer.set(name, { probe: readinessProbe });
  const homeless: string[] = [];
  for (const [endpoint, { port, readinessProbe }] of Object.entries(endpoints)) {
    if (!readinessProbe) continue;
    const candidates =
      readinessProbe.action.kind === 'exec'
        ? containers.slice(0, 1)
        : containers.toSorted((a, b) => Number(names(b, port)) - Number(names(a, port)));
    const free = candidates.find(({ name }) => !byContainer.has(name));
    if (free) byContainer.set(free.name, { probe: readinessProbe, endpoint });
    else homeless.push(endpoint);
  }
  return { byContainer, homeless };
};

const names = ({ ports }: InstanceDefinition['containers'][number], port: number): boolean =>
  Object.values(ports).includes(port);
