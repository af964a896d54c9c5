-- Health of PodDefaults (kubeflow.org), ClusterPodDefaults and Exemptions (sallyport.io) for Argo CD,
-- from the conditions Ready and Stalled.
local health = {status = "Progressing", message = "waiting for the controllers of Sallyport"}
if obj.status == nil or obj.status.conditions == nil then
  return health
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return health
end
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Stalled" and condition.status == "True" then
    return {status = "Degraded", message = condition.reason .. ": " .. (condition.message or "")}
  end
  if condition.type == "Ready" then
    health.message = condition.message
    if condition.status == "True" then
      health.status = "Healthy"
      if condition.reason == "AwaitingPromotion" then
        health.status = "Suspended"
      end
    end
  end
end
return health
